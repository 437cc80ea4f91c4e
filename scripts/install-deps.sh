#!/usr/bin/env bash
# Installs from Debian 12 what Muster needs: install-deps.sh [build|demo|test]. Does nothing if all is there.
set -euo pipefail

build=(build-essential cmake ninja-build ccache mold pkg-config
       libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev
       libboost-dev libssl-dev libyaml-cpp-dev libcli11-dev libspdlog-dev libfmt-dev
       libsqlite3-dev rapidjson-dev nlohmann-json3-dev zlib1g-dev libqhull-dev coinor-libclp-dev libjemalloc-dev
       libgtest-dev libgmock-dev libbenchmark-dev)
run=(iproute2 util-linux procps ca-certificates tzdata crun runc skopeo umoci)
demo=(python3-torch python3-sklearn libopenblas0-pthread)
test=(python3-yaml python3-jsonschema python3-pexpect docker-registry busybox-static nftables tmux curl
      openmpi-bin libopenmpi-dev mpich libmpich-dev)

wanted=("${build[@]}" "${run[@]}")
case ${1:-build} in
    build) ;;
    demo) wanted+=("${demo[@]}") ;;
    test) wanted+=("${demo[@]}" "${test[@]}") ;;
    *) echo "usage: install-deps.sh [build|demo|test]" >&2; exit 2 ;;
esac

missing=()
for package in "${wanted[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ]; then
    echo "error: these Debian packages are missing: ${missing[*]}" >&2
    echo "  fix: run as root: apt-get install ${missing[*]}" >&2
    exit 1
fi
echo "installing ${#missing[@]} Debian packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
