#!/bin/bash
# Hosts of their own on one machine: network namespaces joined by a bridge that lives in a namespace
# itself, so nothing of the machine's own network is touched. Host K is 10.77.0.K (by custom the
# controller's is host 1) behind its link eth0.
#
#   testnet.sh [-p PREFIX] up N           makes hosts 1..N (as root)
#   testnet.sh [-p PREFIX] exec K CMD…    runs CMD on host K
#   testnet.sh [-p PREFIX] cut K          takes host K's link down, without a word to either end
#   testnet.sh [-p PREFIX] heal K         and up again
#   testnet.sh [-p PREFIX] crash K        cuts the link and kills all processes of host K, as a power cut
#   testnet.sh [-p PREFIX] address K      prints its address
#   testnet.sh [-p PREFIX] name K         prints its namespace's name
#   testnet.sh [-p PREFIX] list           prints the hosts, one a line: number, address, processes
#   testnet.sh [-p PREFIX] down           kills what runs on the hosts and removes everything
#
# Two runs with different prefixes (default: muster) do not meet. Exit codes: 0 done, 1 failed, 2
# wrong use, 3 this machine cannot make network namespaces or bridges (no root, or the kernel
# refuses).
set -euo pipefail

readonly HOSTS_MAX=1000
prefix=muster

say() { printf 'testnet: %s\n' "$*" >&2; }
die() { local code=$1; shift; say "$*"; exit "$code"; }
usage() { sed -n '2,/^set /{s/^# \{0,1\}//p}' "$0" >&2; exit 2; }

switch_name() { printf '%s-switch' "$prefix"; }
host_name() { printf '%s-host%d' "$prefix" "$1"; }
host_address() { printf '10.77.%d.%d' $(($1 >> 8)) $(($1 & 255)); }
exists() { [ -e "/run/netns/$1" ]; }

number() {
    if ! [[ ${1:-} =~ ^[1-9][0-9]{0,3}$ ]] || [ "$1" -gt "$HOSTS_MAX" ]; then
        die 2 "host number ${1:-(none)} is not within 1..$HOSTS_MAX"
    fi
}

living() {
    number "${1:-}"
    exists "$(host_name "$1")" ||
        die 1 "no host $1 under the prefix $prefix; testnet.sh -p $prefix up N makes them"
}

# The namespaces of this prefix, hosts in order, the switch last.
namespaces() {
    local path name
    for path in "/run/netns/$prefix-host"*; do
        name=${path##*/}
        [[ $name =~ -host[0-9]+$ ]] && [ "${name%-host*}" = "$prefix" ] && printf '%s\n' "$name"
    done | sort -t- -k2 -V
    if exists "$(switch_name)"; then switch_name; echo; fi
}

# Processes in a namespace can start others while they are killed: again until none is left.
kill_all() {
    local pids attempt
    for ((attempt = 0; attempt < 200; ++attempt)); do
        pids=$(ip netns pids "$1" 2>/dev/null) || return 0
        [ -n "$pids" ] || return 0
        # shellcheck disable=SC2086  # A list of numbers.
        kill -KILL $pids 2>/dev/null || true
        sleep 0.01
    done
    say "these processes of $1 do not end: $(ip netns pids "$1" | tr '\n' ' ')"
    return 1
}

refused() {
    down >/dev/null 2>&1 || true
    die 3 "this machine refuses $1: $2"
}

up() {
    number "${1:-}"
    local count=$1 switch host error k
    [ "$(id -u)" = 0 ] || die 3 "network namespaces need root; run as root, or use loopback"
    command -v ip >/dev/null || die 3 "the command ip is missing; apt-get install iproute2"
    [ -z "$(namespaces)" ] ||
        die 1 "the prefix $prefix is in use; testnet.sh -p $prefix down, or take another prefix"
    switch=$(switch_name)
    error=$(ip netns add "$switch" 2>&1) || refused "a network namespace" "$error"
    error=$(ip -n "$switch" link add br0 type bridge 2>&1) || refused "a bridge" "$error"
    error=$(ip -n "$switch" link set br0 up 2>&1) || refused "a bridge" "$error"
    for ((k = 1; k <= count; ++k)); do
        host=$(host_name "$k")
        error=$(ip netns add "$host" 2>&1) || refused "a network namespace" "$error"
        error=$(ip -n "$switch" link add "p$k" type veth peer name eth0 netns "$host" 2>&1) ||
            refused "a pair of virtual links" "$error"
        error=$(ip -n "$host" -batch - 2>&1 <<BATCH
link set lo up
addr add $(host_address "$k")/16 dev eth0
link set eth0 up
BATCH
        ) || refused "an address" "$error"
        error=$(ip -n "$switch" link set "p$k" master br0 up 2>&1) ||
            refused "a port on the bridge" "$error"
    done
}

down() {
    local name failed=0
    while read -r name; do
        kill_all "$name" || failed=1
        ip netns delete "$name" || failed=1
    done < <(namespaces)
    return "$failed"
}

list() {
    local name k
    while read -r name; do
        k=${name##*-host}
        [ "$name" = "$(switch_name)" ] ||
            printf '%d %s %d\n' "$k" "$(host_address "$k")" "$(ip netns pids "$name" | wc -l)"
    done < <(namespaces)
}

link() { ip -n "$(switch_name)" link set "p$1" "$2"; }

while getopts p:h option; do
    case $option in
        p) prefix=$OPTARG ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[[ $prefix =~ ^[a-z0-9][a-z0-9_]{0,30}$ ]] ||
    die 2 "the prefix '$prefix' is not 1 to 31 of a-z, 0-9 and _"
[ $# -ge 1 ] || usage
verb=$1
shift
case $verb in
    up) up "${1:-}" ;;
    down) down ;;
    list) list ;;
    exec)
        living "${1:-}"
        [ $# -ge 2 ] || usage
        exec ip netns exec "$(host_name "$1")" "${@:2}"
        ;;
    cut) living "${1:-}"; link "$1" down ;;
    heal) living "${1:-}"; link "$1" up ;;
    crash) living "${1:-}"; link "$1" down; kill_all "$(host_name "$1")" ;;
    address) number "${1:-}"; host_address "$1"; echo ;;
    name) number "${1:-}"; host_name "$1"; echo ;;
    *) usage ;;
esac
