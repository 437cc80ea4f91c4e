"""bench/run.sh simulator [--traces DIR]: the simulator's speed on one thread, in CPU time of that thread.

DIR is the folder of public traces (docs say where they come from); default: ../shared/traces, or $MUSTER_TRACES."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    traces = os.environ.get("MUSTER_TRACES", os.path.join(HERE, "..", "..", "shared", "traces"))
    if len(sys.argv) == 3 and sys.argv[1] == "--traces":
        traces = sys.argv[2]
    elif len(sys.argv) != 1:
        sys.exit("usage: bench/run.sh simulator [--traces DIR]")
    folder = os.path.join(traces, "philly")
    if not os.path.isdir(folder):
        sys.exit(f"error: {folder}: there is no such folder\n  fix: name the folder of traces with --traces")
    program = os.path.join(HERE, "..", "build", "release", "bin", "simulator_bench")
    sys.exit(subprocess.call([program, folder]))
