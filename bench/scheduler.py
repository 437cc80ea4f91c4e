"""bench/run.sh scheduler [--quick]: the planner alone, on one thread, in CPU time of that thread.

--quick leaves out the sweep of nodes and queue (growth_*). Lines go to standard output as they come."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    program = os.path.join(HERE, "..", "build", "release", "bin", "scheduler_bench")
    known = {"--quick"}
    if not set(sys.argv[1:]) <= known:
        sys.exit("usage: bench/run.sh scheduler [--quick]")
    sys.exit(subprocess.call([program, *sys.argv[1:]]))
