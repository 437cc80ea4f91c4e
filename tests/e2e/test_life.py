"""Jobs through the real programs: from submit to end, through kills of every daemon, to a full disk."""
import json
import os
import pathlib
import resource
import signal
import subprocess
import tempfile
import unittest

from cluster import BIN, Cluster, Ended, wait_for

# How long the controller is away; the lease of these tests is 8 s.
OUTAGE_S = int(os.environ.get("MUSTER_OUTAGE_S", "20"))


class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        files = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, files[1]))
        try:
            cls.cluster = Cluster(agents=2).__enter__()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, files)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__(None, None, None)

    def test_a_low_soft_limit_of_open_files_binds_neither_daemons_nor_tasks(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        for daemon in [self.cluster.controller, *self.cluster.agents.values()]:
            self.assertEqual(resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE), (hard, hard))
        out = self.cluster.root / "files"
        self.cluster.wait_state(self.cluster.submit(run=f"ulimit -Sn > {out}"), "succeeded")
        self.assertEqual(out.read_text().strip(), str(hard))

    def test_a_job_runs_and_its_output_and_exit_code_come_back(self):
        done = self.cluster.muster("run", "--follow", "--", "sh", "-c", "echo out; echo err >&2; exit 7", check=False)
        self.assertEqual(self.cluster.code, 7, self.cluster.stderr)
        self.assertIn("out", done)

    def test_own_failures_use_up_own_restarts(self):
        job = self.cluster.submit(run="exit 3", restart={"max": 2, "backoff": "10ms"})
        ended = self.cluster.wait_state(job, "failed")
        self.assertEqual((ended["cause"], ended["exit_code"], ended["restarts"]), ("user-error", 3, 2))

    def test_a_gang_sees_its_ranks_and_a_common_master(self):
        out = self.cluster.root / "gang"
        job = self.cluster.submit(nodes=2, env={"OUT": str(out)},
                                  run='echo "$MUSTER_NODE_RANK/$MUSTER_NUM_NODES $MASTER_ADDR:$MASTER_PORT $PET_NNODES" >> $OUT')
        self.cluster.wait_state(job, "succeeded")
        lines = sorted(out.read_text().splitlines())
        self.assertEqual([line.split()[0] for line in lines], ["0/2", "1/2"])
        self.assertEqual(len({line.split()[1] for line in lines}), 1, "one master for all")

    def test_an_elastic_gang_knows_its_range_its_rendezvous_and_where_it_stands(self):
        out = self.cluster.root / "elastic"
        job = self.cluster.submit(nodes="2..4", env={"OUT": str(out)},
                                  run='cp $MUSTER_TOPOLOGY_FILE $OUT.$MUSTER_NODE_RANK; echo "$MUSTER_NUM_NODES $PET_NNODES '
                                      '$PET_RDZV_BACKEND $PET_RDZV_ID $PET_MAX_RESTARTS $PET_RDZV_ENDPOINT $MASTER_ADDR:$MASTER_PORT" >> $OUT')
        self.cluster.wait_state(job, "succeeded")
        lines = [line.split() for line in out.read_text().splitlines()]
        self.assertEqual([line[:5] for line in lines], [["2", "2:4", "c10d", f"{job}-0", "0"]] * 2)
        self.assertEqual(len({name for line in lines for name in line[5:]}), 1, "one place to meet, the master's")
        places = [json.loads(pathlib.Path(f"{out}.{rank}").read_text()) for rank in (0, 1)]
        self.assertEqual([place["node_rank"] for place in places], [0, 1])
        self.assertEqual(places[0]["nodes"], places[1]["nodes"])
        self.assertEqual({node["name"] for node in places[0]["nodes"]}, {"n1", "n2"})
        self.assertEqual(places[0]["levels"], ["leaf"])
        self.assertEqual([len(node["path"]) for node in places[0]["nodes"]], [1, 1])

    def test_an_array_starts_element_by_element_within_its_bound(self):
        job = self.cluster.submit(array="0..9", parallel=2, run="exit $(( $MUSTER_ARRAY_INDEX == 4 ))")
        ended = self.cluster.wait_state(job, "failed", "succeeded")
        self.assertEqual(ended["state"], "failed", "one element failed")

    def test_dependencies_are_met_or_told(self):
        first = self.cluster.submit(run="sleep 1; exit 1")
        after = self.cluster.submit(run="true", depends=f"afternotok:{first}")
        never = self.cluster.submit(run="true", depends=f"afterok:{first}")
        self.cluster.wait_state(after, "succeeded")
        self.cluster.wait_state(never, "cancelled")

    def test_cancel_ends_a_tree_that_ignores_the_signal(self):  # F42
        out = self.cluster.root / "tree"
        job = self.cluster.submit(run=f"trap '' TERM; (trap '' TERM; setsid sleep 987 & echo $! > {out}; wait) & wait")
        self.cluster.wait_state(job, "running")
        pid = int(wait_for(lambda: out.exists() and out.read_text().strip(), "the tree stands"))
        self.cluster.muster("cancel", job, "-y")
        self.cluster.wait_state(job, "cancelled")
        self.assertFalse(pathlib.Path(f"/proc/{pid}").exists(), "a child outlived the cancel")

    def test_why_tells_numbers(self):  # F51
        job = self.cluster.submit(nodes=2, gpus="h100:8", run="true")
        self.cluster.wait_state(job, "pending")
        text = self.cluster.muster("why", job)
        self.assertIn("asks 8 h100 a node; 0 of", text)
        wait_for(lambda: "can never start here" in self.cluster.muster("ps", job), "the list tells it as well")
        self.cluster.muster("cancel", job, "-y")

    def test_hold_and_release(self):
        job = self.cluster.submit(run="true", hold=True)
        self.assertEqual(self.cluster.job(job)["state"], "pending")
        self.cluster.muster("release", job)
        self.cluster.wait_state(job, "succeeded")

    def test_a_time_limit_ends_the_job(self):
        job = self.cluster.submit(run="sleep 600", time="1s")
        self.assertEqual(self.cluster.wait_state(job, "failed")["cause"], "time-limit")

    def test_an_idempotency_key_makes_one_job(self):  # F34
        post = lambda body: self.cluster.api("/v1/jobs", "POST", body, ["Idempotency-Key: k1"])  # noqa: E731
        first, again = post({"run": "true"}), post({"run": "true"})
        self.assertEqual(first["id"], again["id"])
        self.assertEqual(post({"run": "false"})["status"], 422)

    def test_exec_and_exit_codes(self):
        job = self.cluster.submit(run="exec sleep 600")
        self.cluster.wait_state(job, "running")
        self.assertIn(f"job={job}", self.cluster.muster("exec", job, "--", "sh", "-c", "echo job=$MUSTER_JOB_ID"))
        self.cluster.muster("exec", job, "--", "sh", "-c", "exit 9", check=False)
        self.assertEqual(self.cluster.code, 9)
        self.cluster.muster("cancel", job, "-y")
        self.cluster.muster("status", "999999", check=False)
        self.assertEqual(self.cluster.code, 3)
        self.cluster.muster("nosuchverb", check=False)
        self.assertEqual(self.cluster.code, 2)

    def test_a_missing_node_is_refused_at_submit(self):  # F52
        with self.assertRaises(Ended) as refused:
            self.cluster.muster("run", "--constraint", "node in (n1,n77)", "--", "true")
        self.assertIn("n77", str(refused.exception))


class BadFiles(unittest.TestCase):
    def test_each_gets_a_clear_error_and_nothing_is_submitted(self):
        with Cluster(agents=0) as cluster, tempfile.TemporaryDirectory() as folder:
            sparse = pathlib.Path(folder, "big.yaml")
            with open(sparse, "wb") as file:
                file.truncate(1 << 30)
            rows = {
                "missing": None, "binary": bytes(range(256)), "unknown key": b"memry: 4GB\nrun: x\n",
                "negative": b"nodes: -1\nrun: x\n", "2^63": b"nodes: 9223372036854775808\nrun: x\n",
                "bad utf-8": b"name: \xff\xfe\nrun: x\n", "deep": b"env: " + b"[" * 5000 + b"]" * 5000 + b"\nrun: x\n",
                "empty": b"", "no run": b"nodes: 2\n", "huge": sparse}
            for name, content in rows.items():
                path = pathlib.Path(folder, "job.yaml") if not isinstance(content, pathlib.Path) else content
                path.unlink(missing_ok=True) if content is None else None
                if isinstance(content, bytes):
                    path.write_bytes(content)
                with self.subTest(name):
                    cluster.muster("run", path, check=False)
                    self.assertIn(cluster.code, (1, 2, 3, 6), cluster.stderr)
                    self.assertIn("error", cluster.stderr)
                    self.assertLess(len(cluster.stderr), 20_000)
            self.assertEqual(cluster.api("/v1/jobs?all=1")["items"], [])


class Survival(unittest.TestCase):
    def test_kills_of_the_controller_harm_nothing_and_every_job_ends_once(self):  # F32
        with Cluster(agents=2) as cluster:
            ran = cluster.root / "ran"
            ran.mkdir()
            gang = cluster.submit(nodes=2, cpus=0.1, run="exec sleep 1000")
            cluster.wait_state(gang, "running")
            supervisors = set(cluster.task_pids())
            jobs = []
            for wave in range(5):
                jobs += [cluster.submit(cpus=0.1, run=f"echo >> {ran}/$MUSTER_JOB_ID") for _ in range(40)]
                cluster.kill(cluster.controller)
                cluster.start_controller()
            for job in jobs:
                cluster.wait_state(job, "succeeded", limit=120)
                self.assertEqual(len((ran / str(job)).read_text().splitlines()), 1, f"job {job} ran more than once")
            self.assertEqual(cluster.job(gang)["state"], "running")
            self.assertEqual(cluster.job(gang)["attempt"], 0)
            self.assertLessEqual(supervisors, set(cluster.task_pids()), "the gang's tasks were harmed")

    def test_kills_of_the_agents_harm_no_task_and_lose_no_line(self):  # F33
        with Cluster(agents=1) as cluster:
            job = cluster.submit(run="for i in $(seq 300); do echo line $i; sleep 0.02; done")
            cluster.wait_state(job, "running")
            for _ in range(4):
                cluster.kill(cluster.agents[1])
                cluster.start_agent(1)
                cluster.wait_nodes(1)
            ended = cluster.wait_state(job, "succeeded", "failed")
            self.assertEqual((ended["state"], ended["attempt"]), ("succeeded", 0))
            self.assertEqual(cluster.logs(job).splitlines(), [f"line {i}" for i in range(1, 301)])

    def test_a_followed_log_goes_on_through_a_kill_of_the_controller_to_its_last_line(self):  # F32
        with Cluster(agents=1) as cluster:
            job = cluster.submit(run="for i in $(seq 60); do echo line $i; sleep 0.05; done")
            cluster.wait_state(job, "running")
            with subprocess.Popen([BIN / "muster", "logs", "-f", str(job)], env=cluster.env, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as follower:
                self.assertEqual(follower.stdout.readline(), "line 1\n")
                cluster.kill(cluster.controller)
                cluster.start_controller()
                rest = follower.stdout.read().splitlines()
            self.assertEqual(rest, [f"line {i}" for i in range(2, 61)])

    def test_a_lost_host_of_three_is_recovered_from(self):
        with Cluster(agents=3) as cluster:
            out = cluster.root / "starts"
            job = cluster.submit(nodes=2, env={"OUT": str(out)},
                                 run='echo "$MUSTER_ATTEMPT $MUSTER_NODE_RANK" >> $OUT; [ $MUSTER_ATTEMPT = 0 ] && exec sleep 1000; true')
            cluster.wait_state(job, "running")
            wait_for(lambda: out.exists() and len(out.read_text().splitlines()) == 2, "both ranks run")
            victim = cluster.job(job)["ranks"][1]["node"]
            number = int(victim[1:])
            cluster.agents[number].kill()
            for pid in cluster.task_pids(number):
                for child in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split():
                    os.kill(int(child), signal.SIGKILL)
                os.kill(pid, signal.SIGKILL)
            ended = cluster.wait_state(job, "succeeded", "failed", limit=90)
            self.assertEqual((ended["state"], ended["attempt"], ended["restarts"]), ("succeeded", 1, 0))
            self.assertEqual(ended["attempts"][0]["cause"], "node-lost")

    def test_a_controller_away_for_many_fence_times_harms_nothing(self):  # F32
        self.be_away(lambda cluster: cluster.kill(cluster.controller), lambda cluster: cluster.start_controller())

    def test_a_controller_frozen_for_many_fence_times_harms_nothing(self):  # F32
        self.be_away(lambda cluster: cluster.controller.send_signal(signal.SIGSTOP),
                     lambda cluster: cluster.controller.send_signal(signal.SIGCONT))

    def be_away(self, leave, come_back):
        """A gang, jobs that end meanwhile and jobs that wait: for OUTAGE_S seconds without a controller."""
        # "Lost" comes later than the longest pause between two dials of an agent (5 s), as by default.
        lease = {"heartbeat": "200ms", "suspect": "1s", "lost": "7s", "fence": "8s"}
        with Cluster(agents=3, lease=lease) as cluster:
            ran = cluster.root / "ran"
            ran.mkdir()
            gang = cluster.submit(nodes=3, cpus=0.1, run="exec sleep 10000")
            cluster.wait_state(gang, "running")
            # Every agent has its lease renewed and its peers named by then.
            wait_for(lambda: cluster.job(gang)["run_ms"] > 1500, "the gang has run for some heartbeats")
            gangs_own = set(cluster.task_pids())
            short = [cluster.submit(cpus=0.1, run=f"sleep {5 + n % 10}; echo >> {ran}/$MUSTER_JOB_ID") for n in range(10)]
            for job in short:
                cluster.wait_state(job, "running")
            waiting = [cluster.submit(cpus=0.5, run=f"echo >> {ran}/$MUSTER_JOB_ID", hold=True) for _ in range(20)]
            leave(cluster)
            with self.assertRaises(subprocess.TimeoutExpired):
                cluster.agents[1].wait(OUTAGE_S)
            self.assertLessEqual(gangs_own, set(cluster.task_pids()), "the gang's tasks were harmed")
            come_back(cluster)
            cluster.wait_serving()
            cluster.wait_nodes(3)
            for job in waiting:
                cluster.muster("release", str(job))
            for job in short + waiting:
                ended = cluster.wait_state(job, "succeeded", "failed", limit=120)
                self.assertEqual((ended["state"], ended["attempt"]), ("succeeded", 0), f"job {job}")
                self.assertEqual(len((ran / str(job)).read_text().splitlines()), 1, f"job {job} ran more than once")
            again = cluster.job(gang)
            self.assertEqual((again["state"], again["attempt"]), ("running", 0))
            self.assertLessEqual(gangs_own, set(cluster.task_pids()), "the gang's tasks were harmed")

    def test_what_was_acknowledged_is_there_after_a_kill(self):
        with Cluster(agents=0) as cluster:
            done = subprocess.run([BIN / "muster-load", "submit", cluster.socket, "8", "3000", "--ids"],
                                  capture_output=True, text=True, check=True)
            cluster.kill(cluster.controller)
            ids = done.stdout.split()
            cluster.start_controller()
            self.assertEqual(len(set(ids)), 3000)
            self.assertLessEqual(set(ids), set(cluster.muster("ps", "-q").split()))
            self.assertGreater(cluster.submit(run="true"), max(map(int, ids)))


class FullDisk(unittest.TestCase):
    def test_new_work_is_refused_nothing_is_lost_and_cancels_still_work(self):
        if os.geteuid() != 0:
            self.skipTest("mounting a small disk needs root")
        with tempfile.TemporaryDirectory() as disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", disk], check=True)
            try:
                self.fill(disk)
            finally:
                subprocess.run(["umount", "-l", disk], check=True)

    def fill(self, disk):
        with Cluster(agents=0, state=disk, controller_options={"watermark": "8MiB"}) as cluster:
            jobs = [cluster.submit(run="true") for _ in range(20)]
            ballast = pathlib.Path(disk, "somebody-elses-file")
            with open(ballast, "wb") as file:
                try:
                    while True:
                        file.write(bytes(1 << 20))
                        file.flush()
                except OSError:
                    pass
            refused = wait_for(lambda: (lambda r: r if r.get("status") == 507 else None)(
                cluster.api("/v1/jobs", "POST", {"run": "true"})), "new work is refused")
            self.assertIn("fix", json.dumps(refused))
            cluster.muster("cancel", jobs[0], "-y")
            cluster.wait_state(jobs[0], "cancelled")
            cluster.kill(cluster.controller)
            cluster.start_controller()
            self.assertEqual(cluster.job(jobs[0])["state"], "cancelled")
            self.assertEqual(cluster.job(jobs[1])["state"], "pending")
            ballast.unlink()
            wait_for(lambda: "id" in cluster.api("/v1/jobs", "POST", {"run": "true"}), "work is taken again")


if __name__ == "__main__":
    unittest.main(verbosity=2)
