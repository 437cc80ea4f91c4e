#!/usr/bin/env bash
# Builds Muster: scripts/build.sh [PRESET] [TARGET...]. Installs what the build needs first.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
scripts/install-deps.sh
[ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" >/dev/null
cmake --build "build/$preset" ${1:+--target "$@"}
