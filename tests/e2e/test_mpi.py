"""`launch: mpi` on three hosts of their own (network namespaces, no sshd), with the MPI libraries that sites use."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from cluster import SOURCE, Cluster, wait_for

HOSTS = 3
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
    int rank, size, sum, mine, nodes = 0, node = 1 << atoi(getenv("MUSTER_NODE_RANK"));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mine = (rank + 1) * (rank + 1);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&node, &nodes, 1, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
    if (rank == 0) printf("sum %d ranks %d nodes %d\n", sum, size, nodes), fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "sleep") == 0) sleep(10000);
    if (argc > 1 && rank == 4 && strcmp(argv[1], "exit") == 0) exit(9);
    if (argc > 1 && rank == 4 && strcmp(argv[1], "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 9);
    MPI_Finalize();
    return 0;
}
"""
ANSWER = f"sum {sum(rank * rank for rank in range(1, 7))} ranks 6 nodes 7"


class Mpi:
    """The tests, for each library: three nodes of two slots each."""

    @classmethod
    def setUpClass(cls):
        for program in (cls.compiler, cls.runner):
            if not shutil.which(program):
                raise unittest.SkipTest(f"{program} is missing; scripts/install-deps.sh test installs it")
        cls.net = f"mpi{os.getpid()}"
        cls.testnet = [SOURCE / "scripts/testnet.sh", "-p", cls.net]
        up = subprocess.run([*cls.testnet, "up", str(HOSTS + 1)], capture_output=True, text=True, check=False)
        if up.returncode == 3:
            raise unittest.SkipTest(up.stderr.strip())
        assert up.returncode == 0, up.stderr
        cls.addClassCleanup(subprocess.run, [*cls.testnet, "down"], check=True)
        # What the hosts share: programs and the working directory.
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="muster-mpi-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        (cls.shared / "sum.c").write_text(PROGRAM)
        subprocess.run([cls.compiler, "-o", cls.shared / "sum", cls.shared / "sum.c"], check=True)
        cls.cluster = Cluster(agents=HOSTS, net=cls.net).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)

    def submit(self, command, nodes=HOSTS, **job):
        job = {"workdir": str(self.shared), "run": command, **job}
        job = self.cluster.submit(nodes=nodes, cpus=2, memory="256MB", launch="mpi", **job)
        self.addCleanup(self.cluster.muster, "cancel", job, "-y", check=False)
        return job

    def left(self):
        """Processes of the hosts that are neither daemons nor what a daemon keeps ready."""
        names = []
        for host in range(2, HOSTS + 2):
            pids = subprocess.run(["ip", "netns", "pids", f"{self.net}-host{host}"], capture_output=True, text=True,
                                  check=True).stdout.split()
            for pid in pids:
                try:
                    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
                except OSError:
                    continue
                if "agent" not in words and "--spawn" not in words:
                    names.append(" ".join(words))
        return names

    def test_ranks_of_all_nodes_work_together(self):
        job = self.submit(f"{self.runner} ./sum")
        self.cluster.wait_state(job, "succeeded", "failed")
        self.assertIn(ANSWER, self.cluster.logs(job))
        self.assertEqual(self.cluster.job(job)["state"], "succeeded")
        wait_for(lambda: not self.left(), lambda: f"nothing is left on the hosts: {self.left()}")

    def test_a_rank_that_fails_fails_the_job_with_its_exit_code(self):
        job = self.submit(f"{self.runner} ./sum {self.failure}")
        ended = self.cluster.wait_state(job, "failed", "succeeded")
        self.assertEqual((ended["state"], ended["cause"], ended["exit_code"]), ("failed", "user-error", 9),
                         self.cluster.logs(job))
        wait_for(lambda: not self.left(), lambda: f"nothing is left on the hosts: {self.left()}")

    def test_a_cancel_leaves_no_process_on_any_host(self):
        job = self.submit(f"{self.runner} ./sum sleep")
        wait_for(lambda: ANSWER in self.cluster.logs(job), lambda: f"all ranks run: {self.cluster.logs(job)}")
        self.assertEqual(sum(name.startswith("./sum") for name in self.left()), 6)
        self.cluster.muster("cancel", job, "-y")
        self.cluster.wait_state(job, "cancelled")
        self.assertEqual(self.left(), [], "the end is told when all is gone")


class OpenMpi(Mpi, unittest.TestCase):
    compiler, runner, failure = "mpicc.openmpi", "mpirun.openmpi", "exit"

    def test_the_first_nodes_end_is_the_jobs_whatever_it_left_behind(self):
        job = self.submit("mpirun.openmpi ./sum sleep & until ssh n3 pgrep -x sum; do sleep 0.1; done; exit 3")
        self.assertEqual(self.cluster.wait_state(job, "failed", "succeeded")["exit_code"], 3)
        wait_for(lambda: not self.left(), lambda: f"nothing is left on the hosts: {self.left()}")

    def test_a_wrong_secret_opens_no_node(self):
        job = self.submit("sed 's/secret=[0-9a-f]\\{8\\}/secret=00000000/g' $MUSTER_LAUNCH_FILE >wrong; "
                          "MUSTER_LAUNCH_FILE=wrong ssh n2 touch taken; echo code $?; ssh n2 hostname")
        self.cluster.wait_state(job, "succeeded")
        log = self.cluster.logs(job)
        self.assertRegex(log, "node n2 at 10.77.0.3 port [0-9]+ did not accept this job's secret\n")
        self.assertRegex(log, "code 255\n.*host3\n")
        self.assertFalse((self.shared / "taken").exists())

    def test_the_secrets_are_told_nowhere(self):
        out = self.shared / "peers"
        job = self.submit(f"cat $MUSTER_LAUNCH_FILE > {out}")
        self.cluster.wait_state(job, "succeeded")
        secrets = [word[7:] for word in out.read_text().split("\0") if word.startswith("secret=")]
        self.assertEqual([len(secret) for secret in secrets], [32] * HOSTS)
        told = self.cluster.muster("api", "GET", f"/v1/jobs/{job}")
        for path in self.cluster.root.rglob("*.log"):
            told += path.read_text(errors="replace")
        for secret in secrets:
            self.assertNotIn(secret, told)


    def test_a_node_that_is_cut_off_costs_an_attempt_and_nothing_runs_twice(self):
        job = self.submit("[ $MUSTER_ATTEMPT = 0 ] && exec mpirun.openmpi ./sum sleep; exec mpirun.openmpi ./sum", nodes=2)
        answer = f"sum {1 + 4 + 9 + 16} ranks 4 nodes 3"
        wait_for(lambda: answer in self.cluster.logs(job), lambda: f"all ranks run: {self.cluster.logs(job)}")
        host = str(int(self.cluster.job(job)["node_names"][1][1:]) + 1)
        subprocess.run([*self.testnet, "cut", host], check=True)
        try:
            ended = self.cluster.wait_state(job, "succeeded", "failed")
        finally:
            subprocess.run([*self.testnet, "heal", host], check=True)
        self.assertEqual((ended["state"], ended["attempt"], ended["attempts"][0]["cause"]), ("succeeded", 1, "node-lost"))
        self.assertIn(answer, self.cluster.logs(job))
        wait_for(lambda: not self.left(), lambda: f"nothing is left on the hosts: {self.left()}")
        self.cluster.wait_nodes(HOSTS)


    def test_containers_are_no_hindrance(self):
        if not shutil.which("umoci") or not all(node["runtime"] for node in self.cluster.api("/v1/nodes")["items"]):
            self.skipTest("needs umoci and an OCI runtime that works")
        root = self.shared / "root"
        for folder in ("etc", "usr", "shared", "tmp"):
            (root / folder).mkdir(parents=True)
        for name in ("bin", "lib", "lib64"):
            (root / name).symlink_to(f"usr/{name}")
        shutil.copy("/etc/passwd", root / "etc/passwd")
        for words in ("init --layout image", "new --image image:mpi", "insert --image image:mpi root /",
                      "config --image image:mpi --config.env PATH=/bin:/usr/bin"):
            subprocess.run(["umoci", *words.split()], cwd=self.shared, check=True)
        job = self.submit("echo path $PATH; mpirun.openmpi ./sum; mpirun.openmpi ./sum exit; ssh n2 'exit '$?", workdir="/shared",
                          image=f"oci:{self.shared}/image:mpi", mounts=["/usr:/usr:ro", "/etc/openmpi:/etc/openmpi:ro",
                                                                       f"{self.shared}:/shared"])
        ended = self.cluster.wait_state(job, "succeeded", "failed")
        log = self.cluster.logs(job)
        self.assertIn("path /muster/run/bin:/bin:/usr/bin", log)
        self.assertIn(ANSWER, log)
        self.assertEqual((ended["state"], ended["exit_code"]), ("failed", 9), log)
        wait_for(lambda: not self.left(), lambda: f"nothing is left on the hosts: {self.left()}")


class Mpich(Mpi, unittest.TestCase):
    # mpiexec 4.0 waits for ever for the others when a rank on another node exits without MPI_Abort, by ssh as by us.
    compiler, runner, failure = "mpicc.mpich", "mpiexec.mpich", "abort"


if __name__ == "__main__":
    unittest.main()
