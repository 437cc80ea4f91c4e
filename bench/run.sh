#!/usr/bin/env bash
# bench/run.sh NAME [--quick] [--peer]: builds what the benchmark needs, runs it, and prints one JSON line a figure
# and nothing else on standard output. NAME: e2e, scheduler, simulator, compare.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:-}
[ -n "$name" ] && [ -f "bench/$name.py" ] || { echo "usage: bench/run.sh NAME [--quick] [FLAGS OF NAME]; NAME is one of: $(cd bench && ls ./*.py | sed 's|./||; s|\.py||' | tr '\n' ' ')" >&2; exit 2; }
shift
scripts/build.sh release >&2
exec /usr/bin/python3 "bench/$name.py" "$@"
