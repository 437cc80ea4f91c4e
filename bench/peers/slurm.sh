#!/bin/bash
# Slurm 22.05 of Debian 12, from nothing, on loopback, on the work that bench/run.sh e2e gives Muster.
#
#   slurm.sh up              installs, configures and starts munge, slurmctld, four slurmd (as root)
#   slurm.sh measure KEY…    prints a JSON line a key: {"key":"submit_seq","value":745,"unit":"req/s"}
#                            (in the order below); if nothing is up, for the time of the measurement
#   slurm.sh down            stops everything by process id and removes what was written
#
# Keys (`all` means all):
#   submit_seq submit_par8                        C API, 1 and 8 threads
#   submit_seq_sbatch submit_par8_sbatch          a process a job
#   noop_jobs noop_controller_cpu_ms              2,000 times /bin/true
#   submit_to_start_ms submit_to_start_srun_ms    acknowledged to first instruction; idle cluster
#   ps_10k_ms ps_50k_ms ps_json_10k_ms ps_json_50k_ms
#   recover_ms                                    kill -9 to first answer, 10,000 queued
#   lost_acked ids_reused                         kill -9 right after 10,000 acknowledgements
#   rss_idle_mb bytes_per_job rss_agent_mb
# and, of bench/run.sh scheduler, not in `all`:
#   burst_starts_per_s gang_starts_per_s          works A and B, on 10,000 nodes, WORK_S (60) seconds each
# Figures are medians of RUNS runs (1), times of SAMPLES (15) or 5 samples. On a busy machine run it
# under `chrt -r 1`: nice alone does nothing between sessions.
#
# What one has to know: the daemons must run under the program names slurmctld and slurmd, else they
# drop Gres silently; Gres=gpu needs files that exist; the state lies on disk, as Muster's does.
# Exit codes: 0 done, 1 failed, 2 wrong use, 3 no root.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly run=${PEER_SLURM_DIR:-/var/tmp/muster-peer-slurm}
readonly port=${PEER_SLURM_PORT:-16817}
readonly runs=${RUNS:-1}
readonly nodes=4
readonly keys="submit_seq submit_par8 submit_seq_sbatch submit_par8_sbatch
rss_idle_mb bytes_per_job ps_10k_ms ps_json_10k_ms ps_50k_ms ps_json_50k_ms
noop_jobs noop_controller_cpu_ms rss_agent_mb submit_to_start_ms submit_to_start_srun_ms
recover_ms lost_acked ids_reused"
readonly scheduler_keys="burst_starts_per_s gang_starts_per_s"
export SLURM_CONF=$run/slurm.conf

say() { printf 'slurm: %s\n' "$*" >&2; }
die() { local code=$1; shift; say "$*"; exit "$code"; }
usage() { sed -n '2,/^set /{s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }
median() { sort -n | awk '{a[NR] = $1} END {print a[int((NR + 1) / 2)]}'; }
rss_kb() { awk '/^VmRSS/ {print $2}' "/proc/$1/status"; }
cpu_ticks() { awk '{print $14 + $15}' "/proc/$1/stat"; }

# report KEY UNIT: the median of the numbers on standard input, as a JSON line.
report() {
    local value
    value=$(median)
    [ -n "$value" ] || die 1 "$1 could not be measured"
    printf '{"key":"%s","value":%s,"unit":"%s"}\n' "$1" "$value" "$2"
}

# wait_for SECONDS WHAT COMMAND…
wait_for() {
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || die 1 "$what did not come about; see the logs in $run/log"
        sleep 0.02
    done
}

# --- installing, configuring --------------------------------------------------------------------

install_packages() {
    local wanted=(slurm-wlm slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libslurm-dev
        gcc libc6-dev)
    local present
    present=$(dpkg-query -W -f '${Status}\n' "${wanted[@]}" 2>/dev/null |
        grep -c '^install ok installed$') || true
    if [ "$present" != "${#wanted[@]}" ]; then
        say "installing ${wanted[*]}"
        # RUNLEVEL=1: Debian's scripts then start no service.
        DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -o DPkg::Lock::Timeout=600 install -y \
            --no-install-recommends "${wanted[@]}" >"$run/log/apt.log" 2>&1 ||
            die 1 "apt-get install failed; see $run/log/apt.log"
    fi
    mkdir -p "$run/bin"
    ln -sfn /usr/sbin/slurmctld-wlm "$run/bin/slurmctld"
    ln -sfn /usr/sbin/slurmd-wlm "$run/bin/slurmd"
    gcc -O2 -Wall -o "$run/bin/slurm_submit" "$here/slurm_submit.c" -lslurm -lpthread
    printf '#!/bin/sh\nexec /bin/true\n' >"$run/true.sh"
    chmod 755 "$run/true.sh"
}

# SchedulerParameters of a purpose: each is the kindest to Slurm that we found for it.
readonly limits=default_queue_depth=10000,sched_max_job_start=0
scheduler_of() {
    case $1 in
        submit) echo "defer,batch_sched_delay=20,sched_min_interval=2000000,bf_interval=300" ;;
        throughput) echo "defer,batch_sched_delay=1,sched_min_interval=200000,bf_interval=60,$limits" ;;
        latency) echo "batch_sched_delay=0,sched_min_interval=0" ;;
        recover) echo "defer,batch_sched_delay=1,sched_min_interval=200000" ;;
        work)  # Every job is tried; no cycle is cut short. Longer ones would be dropped without a word.
            echo "defer,batch_sched_delay=1,sched_min_interval=100000,default_queue_depth=100000" \
                "partition_job_depth=0,sched_max_job_start=0,max_sched_time=50,max_rpc_cnt=0" \
                "bf_interval=5,bf_max_time=60,bf_max_job_test=100000,bf_max_job_start=0" \
                "bf_window=2880,bf_resolution=60,bf_continue,bf_yield_interval=10000000" \
                "bf_yield_sleep=10000" | tr ' ' ,
            ;;
    esac
}

write_configuration() {
    mkdir -p "$run/state" "$run/spool" "$run/log" "$run/pid" "$run/dev"
    local i
    for i in 0 1 2 3 4 5 6 7; do [ -e "$run/dev/gpu$i" ] || mknod "$run/dev/gpu$i" c 1 3; done
    local ports=$((port + 1001))-$((port + 1000 + nodes))
    cat >"$run/slurm.conf" <<CONF
ClusterName=peer
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmUser=root
SlurmctldPort=$port
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$run/munge/socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$run/state
SlurmdSpoolDir=$run/spool/%n
SlurmctldPidFile=$run/pid/slurmctld
SlurmdPidFile=$run/pid/slurmd.%n
SlurmctldLogFile=$run/log/slurmctld.log
SlurmdLogFile=$run/log/slurmd.%n.log
SlurmctldDebug=error
SlurmdDebug=error
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=$(scheduler_of "$1")
PriorityType=priority/basic
GresTypes=gpu
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MaxJobCount=200000
MinJobAge=${2:-2}
ReturnToService=2
SlurmdParameters=config_overrides
MessageTimeout=60
SlurmctldTimeout=600
SlurmdTimeout=600
BatchStartTimeout=120
InactiveLimit=0
KillWait=5
MailProg=/bin/true
NodeName=DEFAULT Sockets=2 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=1000000 State=UNKNOWN
NodeName=n[1-$nodes] Gres=gpu:8 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=[$ports]
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
CONF
    printf '%s\n' CgroupPlugin=cgroup/v1 ConstrainCores=no ConstrainDevices=no ConstrainRAMSpace=no \
        >"$run/cgroup.conf"
    printf 'NodeName=n[1-%d] Name=gpu File=%s/dev/gpu[0-7]\n' "$nodes" "$run" >"$run/gres.conf"
}

# cloud_nodes COUNT: the configuration of works A and B. Nodes without a slurmd: what is allocated is a real decision,
# and nothing is launched. The kindest to Slurm that we found: 8 cores a node, devices known by their number alone.
cloud_nodes() {
    write_configuration work
    sed -i -e '/^NodeName=/d; /^PartitionName=/d; s/^MessageTimeout=.*/MessageTimeout=100/' "$run/slurm.conf"
    cat >>"$run/slurm.conf" <<CONF
TreeWidth=65533
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=-1
ResumeTimeout=65000
ResumeRate=0
SuspendRate=0
NodeName=DEFAULT Sockets=1 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=1000000
NodeName=n[1-$1] Gres=gpu:8 State=CLOUD NodeAddr=127.0.0.1 Port=$((port + 1001))
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
CONF
    printf 'NodeName=n[1-%d] Name=gpu Count=8\n' "$1" >"$run/gres.conf"
}

# --- starting, stopping -------------------------------------------------------------------------

start_munge() {
    local d=$run/munge
    mkdir -p "$d"
    chmod 755 "$d"
    [ -s "$d/key" ] || (umask 077 && head -c 128 /dev/urandom >"$d/key")
    [ -f "$run/pid/munged" ] && alive "$(cat "$run/pid/munged")" && return
    munged --key-file="$d/key" --socket="$d/socket" --pid-file="$run/pid/munged" \
        --log-file="$run/log/munged.log" --seed-file="$d/seed" --num-threads=4
    wait_for 10 "munge's socket" test -S "$d/socket"
}

# A zombie is dead: its parent, init, may take a second or two to notice.
alive() { [ -d "/proc/$1" ] && ! grep -q '^State:[[:space:]]Z' "/proc/$1/status" 2>/dev/null; }

# Ends the process of a pid file, if it is (still) the program it should be.
stop_pid() {
    local file=$run/pid/$1 program=$2 signal=${3:-TERM} pid
    [ -f "$file" ] || return 0
    pid=$(cat "$file")
    if [ -n "$pid" ] && [[ $(readlink "/proc/$pid/exe" 2>/dev/null) == */"$program"* ]]; then
        kill "-$signal" "$pid" 2>/dev/null || true
        for _ in $(seq 750); do alive "$pid" || break; sleep 0.02; done
        if alive "$pid"; then kill -KILL "$pid"; fi
    fi
    rm -f "$file"
}

# Steps outlive their slurmd; ours are known by our configuration in their environment.
stop_steps() {
    local exe pid
    for exe in /proc/[0-9]*/exe; do
        [[ $(readlink "$exe" 2>/dev/null) == */slurmstepd* ]] || continue
        pid=${exe#/proc/}
        pid=${pid%/exe}
        if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qxF "SLURM_CONF=$SLURM_CONF"; then
            kill -KILL "$pid" 2>/dev/null || true
        fi
    done
}

# daemon NAME LOG arguments…
daemon() {
    local name=$1 log=$run/log/$2.out
    shift 2
    "$run/bin/$name" "$@" </dev/null >"$log" 2>&1 || die 1 "$name did not start: $(tail -1 "$log")"
}
start_controller() { daemon slurmctld slurmctld "$@"; }
answers() { scontrol ping 2>/dev/null | grep -q 'is UP'; }

stop_cluster() {
    local i
    stop_pid slurmctld slurmctld
    for ((i = 1; i <= nodes; ++i)); do stop_pid "slurmd.n$i" slurmd; done
    stop_steps
}

# fresh PURPOSE [MIN_JOB_AGE]: an empty controller whose jobs cannot start: only its front works.
fresh() {
    stop_cluster
    rm -rf "$run/state" "$run/spool"
    write_configuration "$@"
    start_controller -c
    wait_for 30 "slurmctld's answer" answers
    scontrol update PartitionName=main State=DOWN
}

idle_nodes() { [ "$(sinfo -h -t idle -o %D | awk '{n += $1} END {print n + 0}')" = "$nodes" ]; }

# fresh_nodes PURPOSE: the same with its nodes, ready to run.
fresh_nodes() {
    local i
    fresh "$1"
    scontrol update PartitionName=main State=UP
    for ((i = 1; i <= nodes; ++i)); do
        mkdir -p "$run/spool/n$i"
        daemon slurmd "slurmd.n$i" -N "n$i"
    done
    wait_for 60 "the nodes' readiness" idle_nodes
}

controller_pid() { cat "$run/pid/slurmctld"; }

# --- measuring ----------------------------------------------------------------------------------

measure_submit() { # KEY COUNT THREADS
    local r
    for ((r = 0; r < runs; ++r)); do
        fresh submit
        "$run/bin/slurm_submit" "$2" "$3" 0 | cut -d' ' -f1
    done | report "$1" req/s
}

measure_sbatch() { # KEY COUNT PARALLEL
    local r begin
    for ((r = 0; r < runs; ++r)); do
        fresh submit
        begin=$(date +%s%N)
        seq "$2" | xargs -P "$3" -n1 sbatch -Q -o /dev/null "$run/true.sh" >/dev/null
        awk -v n="$2" -v ns=$(($(date +%s%N) - begin)) 'BEGIN {printf "%.1f\n", n * 1e9 / ns}'
    done | report "$1" req/s
}

completed() { sdiag | awk -F: '/Jobs completed/ {print $2 + 0}'; }

measure_noop() { # KEY: noop_jobs or noop_controller_cpu_ms
    local r begin ticks count=2000
    for ((r = 0; r < runs; ++r)); do
        fresh_nodes throughput
        sdiag -r >/dev/null
        ticks=$(cpu_ticks "$(controller_pid)")
        begin=$(now_ms)
        "$run/bin/slurm_submit" "$count" 8 0 >/dev/null
        until [ "$(completed)" -ge "$count" ]; do
            [ $(($(now_ms) - begin)) -lt 300000 ] ||
                die 1 "only $(completed) of $count jobs ended within 300 s"
            sleep 0.05
        done
        if [ "$1" = noop_jobs ]; then
            awk -v n=$count -v ms=$(($(now_ms) - begin)) 'BEGIN {printf "%.1f\n", n * 1000 / ms}'
        else
            ticks=$(($(cpu_ticks "$(controller_pid)") - ticks))
            awk -v n=$count -v t="$ticks" -v hz="$(getconf CLK_TCK)" \
                'BEGIN {printf "%.2f\n", t * 1000 / hz / n}'
        fi
    done | report "$1" "$([ "$1" = noop_jobs ] && echo jobs/s || echo ms/job)"
}

# Acknowledged to the first instruction of the job's script, which writes the time down.
measure_start() { # KEY: submit_to_start_ms or submit_to_start_srun_ms
    local i acked stamp=$run/stamp script=$run/stamp.sh
    cat >"$script" <<SCRIPT
#!/bin/bash
printf '%s\n' "\${EPOCHREALTIME/./}" >$stamp.new && mv $stamp.new $stamp
SCRIPT
    chmod 755 "$script"
    fresh_nodes latency
    for ((i = 0; i < ${SAMPLES:-15}; ++i)); do
        rm -f "$stamp"
        if [ "$1" = submit_to_start_ms ]; then
            sbatch -Q -o /dev/null "$script" >/dev/null
            acked=${EPOCHREALTIME/./}
            wait_for 60 "the job's start" test -s "$stamp"
        else
            acked=${EPOCHREALTIME/./}  # srun acknowledges nothing: from its own start.
            srun -Q -n1 "$script"
        fi
        awk -v us=$(($(cat "$stamp") - acked)) 'BEGIN {printf "%.1f\n", us / 1000}'
        sleep "0.$((5 + RANDOM % 5))"  # Not in step with the scheduler's cycle.
    done | report "$1" ms
}

# Fills the queue up to COUNT jobs of one GPU; keeps what is there already.
queued=-1
fill() {
    if [ "$queued" -lt 0 ] || [ "$queued" -gt "$1" ]; then
        fresh submit
        queued=0
    fi
    if [ "$queued" -lt "$1" ]; then
        "$run/bin/slurm_submit" $(($1 - queued)) 8 1 >/dev/null
        sleep 6      # The state is saved up to 5 s later, which would disturb.
        queued=$1
    fi
}

measure_list() { # KEY COUNT squeue-arguments…
    local key=$1 i begin
    fill "$2"
    shift 2
    for ((i = 0; i < 5; ++i)); do
        begin=$(date +%s%N)
        squeue "$@" >/dev/null
        awk -v ns=$(($(date +%s%N) - begin)) 'BEGIN {printf "%.1f\n", ns / 1e6}'
    done | report "$key" ms
}

kill_controller() {
    local pid
    pid=$(controller_pid)
    kill -KILL "$pid"
    while alive "$pid"; do sleep 0.002; done
    rm -f "$run/pid/slurmctld"
}

listening() { (exec 3<>"/dev/tcp/127.0.0.1/$port"); }

measure_recover() {
    local r begin
    for ((r = 0; r < runs; ++r)); do
        fresh recover 3600
        "$run/bin/slurm_submit" 10000 8 1 >/dev/null
        sleep 10     # All of it is saved by then.
        begin=$(now_ms)
        kill_controller
        start_controller
        # Its clients wait a second after a refused connection: so ask once the port is open.
        wait_for 60 "the controller's port" listening
        wait_for 60 "the answer after the restart" squeue -h -j 1
        echo $(($(now_ms) - begin))
    done | report recover_ms ms
}

# Killed at once after 10,000 acknowledgements: how many of them are unknown afterwards, how many
# ids are given a second time?
measure_lost() { # KEY: lost_acked or ids_reused
    local r
    for ((r = 0; r < runs; ++r)); do
        fresh recover 3600
        "$run/bin/slurm_submit" 10000 8 1 "$run/acked" >/dev/null
        kill_controller
        start_controller
        wait_for 60 "the answer after the restart" answers
        sort "$run/acked" >"$run/acked.sorted"
        if [ "$1" = lost_acked ]; then
            squeue -h -t all -o %A | sort | comm -23 "$run/acked.sorted" - | wc -l
        else
            "$run/bin/slurm_submit" 10000 8 1 "$run/again" >/dev/null
            sort "$run/again" | comm -12 "$run/acked.sorted" - | wc -l
        fi
    done | report "$1" "$([ "$1" = lost_acked ] && echo jobs || echo ids)"
}

jobs_started() { timeout 100 sdiag | awk -F: '/Jobs started/ {print $2 + 0}'; }

# Starts a second, up to the last start within WORK_S seconds of 10,000 jobs that wait for an empty cluster of 10,000
# nodes. Gangs do not end here (nothing runs): this is the filling alone, which is Slurm's best part.
measure_work() { # KEY WORK GPUS
    local begin now last=0 last_at=0 started
    stop_cluster
    rm -rf "$run/state" "$run/spool"
    # A submission looks at every node: 10,000 of them would take a quarter of an hour.
    cloud_nodes 64
    start_controller -c
    wait_for 30 "slurmctld's answer" answers
    scontrol update PartitionName=main State=DOWN
    "$run/bin/slurm_submit" 10000 8 "$3" - "$2" >/dev/null || die 1 "10,000 jobs could not be submitted"
    stop_pid slurmctld slurmctld
    cloud_nodes 10000
    start_controller
    wait_for 120 "slurmctld's answer with 10,000 nodes" answers
    sdiag -r >/dev/null
    begin=$(now_ms)
    scontrol update PartitionName=main State=UP
    while now=$(($(now_ms) - begin)) && [ "$now" -lt $((${WORK_S:-60} * 1000)) ] && [ "$last" -lt 10000 ]; do
        sleep 0.5
        started=$(jobs_started)
        [ -n "$started" ] && [ "$started" -gt "$last" ] || continue
        last=$started last_at=$(($(now_ms) - begin))
    done
    say "$1: $last of 10,000 jobs started in $last_at ms"
    awk -v n="$last" -v ms="$last_at" 'BEGIN {printf "%.2f\n", ms ? n * 1000 / ms : 0}' | report "$1" 1/s
    stop_cluster
}

measure_memory() { # KEY
    local idle i
    case $1 in
        rss_idle_mb | bytes_per_job)
            fresh submit
            queued=0
            sleep 2
            idle=$(rss_kb "$(controller_pid)")
            if [ "$1" = rss_idle_mb ]; then
                awk -v kb="$idle" 'BEGIN {printf "%.1f\n", kb / 1024}' | report "$1" MB
            else
                fill 10000
                echo $((($(rss_kb "$(controller_pid)") - idle) * 1024 / 10000)) | report "$1" bytes
            fi
            ;;
        rss_agent_mb)
            fresh_nodes latency
            for ((i = 1; i <= nodes; ++i)); do rss_kb "$(cat "$run/pid/slurmd.n$i")"; done |
                awk '{sum += $1} END {printf "%.1f\n", sum / NR / 1024}' | report "$1" MB
            ;;
    esac
}

measure() {
    case $1 in ps_* | bytes_per_job | rss_idle_mb) ;; *) queued=-1 ;; esac  # Others empty it.
    case $1 in
        submit_seq) measure_submit "$1" 3000 1 ;;
        submit_par8) measure_submit "$1" 3000 8 ;;
        submit_seq_sbatch) measure_sbatch "$1" 300 1 ;;
        submit_par8_sbatch) measure_sbatch "$1" 800 8 ;;
        noop_jobs | noop_controller_cpu_ms) measure_noop "$1" ;;
        submit_to_start_ms | submit_to_start_srun_ms) measure_start "$1" ;;
        ps_10k_ms) measure_list "$1" 10000 -h ;;
        ps_50k_ms) measure_list "$1" 50000 -h ;;
        ps_json_10k_ms) measure_list "$1" 10000 --json ;;
        ps_json_50k_ms) measure_list "$1" 50000 --json ;;
        recover_ms) measure_recover ;;
        lost_acked | ids_reused) measure_lost "$1" ;;
        rss_idle_mb | bytes_per_job | rss_agent_mb) measure_memory "$1" ;;
        burst_starts_per_s) measure_work "$1" a 1 ;;
        gang_starts_per_s) measure_work "$1" b 8 ;;
    esac
}

up() {
    mkdir -p "$run/log" "$run/pid"
    chmod 755 "$run"
    install_packages
    start_munge
    fresh_nodes latency
}

down() {
    [ -d "$run" ] || return 0
    stop_cluster
    stop_pid munged munged
    rm -rf "$run"
}

[ $# -ge 1 ] || usage
[ "$(id -u)" = 0 ] || die 3 "Slurm's daemons and mknod need root"
verb=$1
shift
case $verb in
    up) up ;;
    down) down ;;
    measure)
        [ $# -ge 1 ] || usage
        # shellcheck disable=SC2086  # Words are wanted.
        [ "$1" != all ] || set -- $keys
        for key in "$@"; do
            [[ " ${keys//$'\n'/ } $scheduler_keys " == *" $key "* ]] ||
                die 2 "no key $key; the keys are: ${keys//$'\n'/ } $scheduler_keys"
        done
        if [ ! -f "$SLURM_CONF" ]; then
            trap down EXIT
            up
        fi
        for key in $keys $scheduler_keys; do
            [[ " $* " != *" $key "* ]] || measure "$key"
        done
        ;;
    *) usage ;;
esac
