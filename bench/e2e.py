"""The end-to-end figures: submit, start, no-op jobs, ps, recovery, memory. One JSON line a figure on standard output."""
import argparse
import http.client
import json
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from cluster import BIN, Cluster, wait_for  # noqa: E402

GOALS = {  # key: (unit, better, goal)
    "fdatasync_p50_ms": ("ms", "lower", None), "submit_seq": ("req/s", "higher", None), "submit_par8": ("req/s", "higher", 8000),
    "noop_jobs": ("jobs/s", "higher", 1000), "submit_to_start_ms": ("ms", "lower", 15),
    "ps_10k_ms": ("ms", "lower", 40), "ps_50k_ms": ("ms", "lower", 150), "ps_json_10k_ms": ("ms", "lower", 150),
    "ps_json_50k_ms": ("ms", "lower", 700), "recover_ms": ("ms", "lower", 500), "lost_acked": ("jobs", "lower", 0),
    "ids_reused": ("ids", "lower", 0), "rss_idle_mb": ("MB", "lower", 30), "bytes_per_job": ("B", "lower", 1024),
    "rss_agent_mb": ("MB", "lower", 20), "rss_supervisor_mb": ("MB", "lower", 2),
}
peers = {}


def say(key, value, goal=None):
    unit, better, fixed = GOALS[key]
    line = {"bench": "e2e", "what": key, "value": round(value, 3), "unit": unit, "better": better,
            "goal": goal if goal is not None else fixed}
    if key in peers:
        line.update(peer="slurm-22.05", peer_value=peers[key])
    print(json.dumps(line), flush=True)


def load(*words):
    done = subprocess.run([BIN / "muster-load", *map(str, words)], capture_output=True, text=True, check=True)
    return done


def submit(cluster, clients, jobs, *more):
    done = load("submit", cluster.socket, clients, jobs, *more)
    return json.loads(done.stderr.strip().splitlines()[-1]), done.stdout.split()


def rss_kb(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def measure_submit(quick):
    with Cluster(agents=0) as cluster:
        # A device that no node has: the jobs stay queued, as in a busy cluster.
        sync = json.loads(load("sync", cluster.state, 300 if quick else 1000).stdout)
        say("fdatasync_p50_ms", sync["p50_ms"])
        time.sleep(1)
        say("rss_idle_mb", rss_kb(cluster.controller.pid) / 1024)
        submit(cluster, 1, 200)
        rounds = 3 if quick else 5
        say("submit_seq", statistics.median(submit(cluster, 1, 1500)[0]["per_second"] for _ in range(rounds)),
            round(0.6 / sync["p50_ms"] * 1000))
        say("submit_par8", statistics.median(submit(cluster, 8, 8000)[0]["per_second"] for _ in range(rounds)))


def measure_ps(quick):
    with Cluster(agents=0) as cluster:
        for count, label in ((10_000, "10k"), (50_000, "50k")):
            submit(cluster, 8, count - len(queued(cluster)) if label == "10k" else 40_000)
            for form, key in (([], "ps"), (["-o", "json"], "ps_json")):
                times = []
                for _ in range(3 if quick else 7):
                    start = time.monotonic()
                    done = subprocess.run([BIN / "muster", "ps", *form], env=cluster.env, capture_output=True, check=True)
                    times.append((time.monotonic() - start) * 1000)
                rows = len(json.loads(done.stdout)) if form else done.stdout.count(b"\n") - 1
                rows = len(json.loads(done.stdout)["items"]) if form and isinstance(json.loads(done.stdout), dict) else rows
                assert rows == count, f"ps showed {rows} of {count} jobs"
                say(f"{key}_{label}_ms", statistics.median(times))


def queued(cluster):
    return cluster.api("/v1/jobs?fields=id&layout=rows&limit=1000")["rows"]


def measure_recovery(quick):
    with Cluster(agents=0) as cluster:
        _, ids = submit(cluster, 8, 10_000, "--ids")
        cluster.kill(cluster.controller)
        start = time.monotonic()
        cluster.start_controller(wait=False)
        cluster.wait_serving()
        wait_for(lambda: cluster.api(f"/v1/jobs/{ids[-1]}", check=False), "the first job is served")
        say("recover_ms", (time.monotonic() - start) * 1000)
        found = {line.strip() for line in cluster.muster("ps", "-q").split()}
        say("lost_acked", len(set(ids) - found))
        _, fresh = submit(cluster, 8, 1000, "--ids")
        say("ids_reused", len(set(ids) & set(fresh)) + len(ids) - len(set(ids)))


def measure_memory(quick):
    with Cluster(agents=0) as cluster:
        submit(cluster, 8, 2000)
        time.sleep(1)
        before, jobs = rss_kb(cluster.controller.pid), 20_000 if quick else 100_000
        submit(cluster, 8, jobs)
        time.sleep(2)
        say("bytes_per_job", (rss_kb(cluster.controller.pid) - before) * 1024 / jobs)


def measure_run(quick):
    with Cluster(agents=1) as cluster:
        done = load("start", cluster.socket, 30 if quick else 100, BIN / "muster-stamp", cluster.root)
        say("submit_to_start_ms", json.loads(done.stdout)["median_ms"])
        say("rss_agent_mb", rss_kb(cluster.agents[1].pid) / 1024)
        job = cluster.submit(run="exec sleep 1000")
        cluster.wait_state(job, "running")
        say("rss_supervisor_mb", max(rss_kb(pid) for pid in cluster.task_pids()) / 1024)
    # More CPUs are offered than there are, as for Slurm's nodes: the rate is the managers', not a queue for two CPUs.
    with Cluster(agents=4, agent_options={"cpus": 64}) as cluster:
        rates = []
        for _ in range(1 if quick else 3):
            jobs = 2000
            start = time.monotonic()
            submit(cluster, 8, jobs, "--body", '{"run":"exec true"}')
            wait_idle(cluster)
            rates.append(jobs / (time.monotonic() - start))
        say("noop_jobs", statistics.median(rates))


def wait_idle(cluster):
    """Over one connection: a curl at each look took a tenth of the two CPUs from the programs that are measured."""
    connection = http.client.HTTPConnection("muster")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(cluster.socket))

    def idle():
        connection.request("GET", "/v1/cluster")
        return not any(json.load(connection.getresponse())["jobs"].values())
    wait_for(idle, "all no-op jobs ended", 120)
    connection.close()


PARTS = {"submit": measure_submit, "ps": measure_ps, "recovery": measure_recovery, "memory": measure_memory, "run": measure_run}


def measure_peer(keys):
    done = subprocess.run([ROOT / "bench/peers/slurm.sh", "measure", *keys], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        figure = json.loads(line)
        peers[figure["key"]] = figure["value"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="ends within 50 s on 2 cores")
    parser.add_argument("--peer", action="store_true", help="measures Slurm in the same run")
    parser.add_argument("--only", choices=list(PARTS), action="append")
    options = parser.parse_args()
    if options.peer:
        measure_peer([key for key in GOALS if key not in ("fdatasync_p50_ms", "rss_supervisor_mb")])
    for part in options.only or PARTS:
        PARTS[part](options.quick)


if __name__ == "__main__":
    main()
