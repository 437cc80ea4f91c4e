"""bench/run.sh scheduler [--quick] [--peer] [--only PART]: the planner alone, in CPU time of its thread, and the whole
controller with modelled agents, in wall time. Lines go to standard output as they come.

--quick leaves out the sweep over nodes and queue (growth_*). --peer measures Slurm on works A and B first (as root; some
three minutes, and it is taken down again)."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEER_KEYS = ("burst_starts_per_s", "gang_starts_per_s")


def measure_peer():
    """By key; empty where Slurm cannot be had."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print("scheduler: Slurm is left out: it needs root and Debian's packages", file=sys.stderr)
        return {}
    done = subprocess.run([ROOT / "bench/peers/slurm.sh", "measure", *PEER_KEYS], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print("scheduler: Slurm is left out: it could not be measured, see above", file=sys.stderr)
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    return {figure["key"]: figure["value"] for figure in figures}


def main():
    parser = argparse.ArgumentParser(prog="bench/run.sh scheduler")
    parser.add_argument("--quick", action="store_true", help="ends within 50 s on 2 cores")
    parser.add_argument("--peer", action="store_true", help="measures Slurm in the same run")
    parser.add_argument("--only", action="append", default=[], help="this part alone")
    options = parser.parse_args()
    peer = measure_peer() if options.peer else {}
    words = ["--quick"] * options.quick + [word for part in options.only for word in ("--only", part)]
    with subprocess.Popen([ROOT / "build/release/bin/scheduler_bench", *words], stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            figure = json.loads(line)
            if figure["what"] in peer:
                figure.update(peer="slurm-22.05", peer_value=peer[figure["what"]])
            print(json.dumps(figure), flush=True)
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
