#!/usr/bin/env bash
# The main job from beginning to end: installs and builds, then runs a gang of real training on four hosts, kills one of
# them in the middle, and shows the job recover and finish by itself. Leaves nothing running and nothing behind.
#
# Each host is a network namespace with an address of its own; where the kernel refuses those, four agents on loopback.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "${1:-}" != --built ] && { scripts/install-deps.sh demo; scripts/build.sh release muster musterd muster-task; }

bin=${MUSTER_BIN:-$PWD/build/release/bin}
work=$(mktemp -d /tmp/muster-demo.XXXXXX)
net=demo$$
pids=()
say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
fail() { printf 'demo: %s\n' "$*" >&2; tail -n 25 "$work"/*.log >&2 || true; exit 1; }

cleanup() {
    set +e
    [ -n "${killer:-}" ] && kill "$killer" 2>/dev/null
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null; done
    for pid in $(task_pids "$work"); do kill -KILL "$pid" 2>/dev/null; done
    scripts/testnet.sh -p "$net" down 2>/dev/null
    rm -rf "$work"
}
# Supervisors whose task's folder, in which they stand, lies under $1.
task_pids() {
    local pid
    for pid in $(pgrep -x muster-task || true); do
        [[ $(readlink "/proc/$pid/cwd" 2>/dev/null) == "$1"* ]] && echo "$pid"
    done
    true
}
trap cleanup EXIT
trap 'exit 130' INT TERM

if scripts/testnet.sh -p "$net" up 5; then
    on() { scripts/testnet.sh -p "$net" exec "$@"; }
    address() { scripts/testnet.sh -p "$net" address "$1"; }
    crash() { scripts/testnet.sh -p "$net" crash "$(($1 + 1))"; }
    kind="hosts of their own (network namespaces on a bridge)"
else
    code=$?
    [ "$code" = 3 ] || fail "the test network did not come up"
    on() { shift; exec "$@"; }
    address() { echo 127.0.0.1; }
    # Agent, supervisors and all that runs below them, at once.
    crash() {
        local victims=${pids[$1]} children
        children="$(task_pids "$work/n$1/")"
        while [ -n "$children" ]; do
            victims="$victims $children"
            children=$(pgrep -P "$(echo "$children" | tr '\n ' ',,' | sed 's/,$//;s/,,*/,/g')" || true)
        done
        # shellcheck disable=SC2086  # A list of numbers.
        kill -KILL $victims
    }
    kind="agents on loopback (this kernel refuses network namespaces)"
fi

say "A controller and four $kind"
export MUSTER_SERVER=unix:$work/api.sock
# Shorter than the defaults (1s, 5s, 15s, 30s), so that the demo does not spend its time on the fence.
cat >"$work/controller.yaml" <<YAML
state_dir: $work/controller
socket: $work/api.sock
listen: ''
agents: $(address 1):7071
advertise: $(address 1)
lease: {heartbeat: 500ms, suspect: 2s, lost: 5s, fence: 10s}
YAML
on 1 "$bin/musterd" controller --config "$work/controller.yaml" 2>"$work/controller.log" &
pids+=($!)
for _ in $(seq 200); do "$bin/muster" api GET /v1/health >/dev/null 2>&1 && break; sleep 0.05; done
token=$("$bin/muster" token create --join --uses 4 -q) || fail "no join token"
for n in 1 2 3 4; do
    printf 'name: n%s\nstate_dir: %s/n%s\naddress: %s\npeers: %s:0\nlabels: {leaf: leaf%s}\n' "$n" "$work" "$n" "$(address $((n + 1)))" "$(address $((n + 1)))" $(((n + 1) / 2)) >"$work/n$n.yaml"
    on $((n + 1)) "$bin/musterd" agent --config "$work/n$n.yaml" --join "$token" 2>"$work/n$n.log" &
    pids+=($!)
done
for _ in $(seq 200); do [ "$("$bin/muster" nodes -o name 2>/dev/null | wc -l)" = 4 ] && break; sleep 0.05; done
"$bin/muster" nodes || fail "the agents did not join"

say "examples/digits-ddp.yaml: three nodes train together; one of them is killed at 40 %"
(
    set +e
    while sleep 0.3; do
        status=$("$bin/muster" status 1 -o json 2>/dev/null) || continue
        step=$(grep -o '"step": *[0-9]*' <<<"$status" | grep -o '[0-9]*$' | sort -n | tail -1)
        [ "${step:-0}" -ge 120 ] && break
    done
    victim=$("$bin/muster" status 1 -o json | /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["ranks"][1]["node"])')
    printf '\n\033[1;31m>>> the power of host %s fails: agent, tasks and link at once\033[0m\n' "$victim" >&2
    crash "${victim#n}"
) &
killer=$!
start=$SECONDS
"$bin/muster" run examples/digits-ddp.yaml --checkpoint "$work/checkpoints" --follow || fail "the job failed"
kill "$killer" 2>/dev/null && wait "$killer" 2>/dev/null || true

say "What happened"
"$bin/muster" status 1
accuracy=$("$bin/muster" logs 1 | grep -o 'test accuracy[^0-9]*[0-9.]*' | tail -1 | grep -o '[0-9.]*$') || fail "no accuracy was printed"
printf '\ntest accuracy %s after %s s\n' "$accuracy" $((SECONDS - start))
awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.95) }' || fail "the accuracy is below 0.95"
