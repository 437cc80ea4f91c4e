#!/usr/bin/env bash
# Installs, builds and passes every test. scripts/test.sh [-R REGEX]: only tests whose name matches.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install-deps.sh test
scripts/build.sh release
ctest --test-dir build/release --output-on-failure --timeout 600 -j "$(nproc)" "$@"
