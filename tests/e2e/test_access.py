"""Who may do what, and as whom it runs: the socket's peer, tokens over TLS, the uid of tasks."""
import os
import pwd
import re
import subprocess
import unittest

from cluster import BIN, Cluster, wait_for

SOMEBODY = "nobody"  # Every Debian has him, and he is not root.


def as_user(name):
    who = pwd.getpwnam(name)
    return {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}


@unittest.skipIf(os.geteuid() != 0, "needs root, to be several users")
class Access(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(agents=1, controller_options={"listen": "127.0.0.1:0"}).__enter__()
        cls.cluster.root.chmod(0o755)
        log = (cls.cluster.root / "controller.log").read_text()
        cls.url = "https://127.0.0.1:" + re.search(r"REST port (\d+)", log)[1]

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__(None, None, None)

    def run_as(self, name, *words):
        home = self.cluster.root / f"home-{name}"
        home.mkdir(exist_ok=True)
        os.chown(home, pwd.getpwnam(name).pw_uid, -1)
        env = dict(self.cluster.env, HOME=str(home), XDG_CONFIG_HOME=str(home))
        return subprocess.run([BIN / "muster", *map(str, words)], env=env, cwd=home, capture_output=True, text=True,
                              timeout=60, **as_user(name))

    def test_a_local_user_runs_as_himself_and_not_as_root(self):
        done = self.run_as(SOMEBODY, "run", "--follow", "--workdir", "/tmp", "--", "sh", "-c", "id -un; id -u; id -G")
        self.assertEqual(done.returncode, 0, done.stderr)
        uid, gid = pwd.getpwnam(SOMEBODY).pw_uid, pwd.getpwnam(SOMEBODY).pw_gid
        self.assertEqual(done.stdout.split(), [SOMEBODY, str(uid), str(gid)])

    def test_nobody_acts_on_anothers_job_or_as_an_admin(self):  # F29
        job = self.cluster.submit(run="exec sleep 600")
        done = self.run_as(SOMEBODY, "cancel", job, "-y")
        self.assertEqual(done.returncode, 4, done.stderr)
        done = self.run_as(SOMEBODY, "node", "drain", "n1", "--reason", "mine")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.cluster.muster("cancel", job, "-y")

    def test_a_token_over_tls_speaks_for_its_user_only(self):
        token = self.cluster.muster("token", "create", "--user", SOMEBODY, "-q").strip()
        self.assertTrue(token.startswith("MUSTER_pat_"))
        sha = self.cluster.api("/v1/health")["ca_sha256"]
        env = dict(self.cluster.env, MUSTER_SERVER=self.url, MUSTER_CA_SHA256=sha, MUSTER_TOKEN=token)
        run = lambda *words: subprocess.run([BIN / "muster", *words], env=env, capture_output=True, text=True,  # noqa: E731
                                            cwd="/tmp", timeout=60)
        done = run("run", "--follow", "--", "id", "-un")
        self.assertEqual((done.returncode, done.stdout.strip()), (0, SOMEBODY), done.stderr)
        env["MUSTER_TOKEN"] = token[:-1] + ("a" if token[-1] != "a" else "b")
        self.assertEqual(run("ps").returncode, 4)
        env["MUSTER_TOKEN"], env["MUSTER_CA_SHA256"] = token, "0" * 64
        wrong = run("ps")
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn("certificate", wrong.stderr)

    def test_a_user_that_the_node_does_not_know_gets_a_clear_end(self):
        token = self.cluster.muster("token", "create", "--user", "no-such-user-here", "-q").strip()
        env = dict(self.cluster.env, MUSTER_SERVER=self.url, MUSTER_TOKEN=token,
                   MUSTER_CA_SHA256=self.cluster.api("/v1/health")["ca_sha256"])
        done = subprocess.run([BIN / "muster", "run", "-q", "--", "true"], env=env, capture_output=True, text=True, cwd="/tmp")
        self.assertEqual(done.returncode, 0, done.stderr)
        job = done.stdout.split()[-1]

        def told():
            record = self.cluster.job(job)
            return "no-such-user-here" in str(record.get("attempts")) + str(record.get("message"))
        wait_for(told, lambda: f"the reason names the user: {self.cluster.job(job)}")
        self.cluster.muster("cancel", job, "-y", check=False)

    def test_a_join_token_is_good_once_and_a_bound_name_is_not_given_again(self):
        token = self.cluster.muster("token", "create", "--join", "-q").strip()
        join = lambda name, folder: subprocess.run(  # noqa: E731
            [BIN / "musterd", "agent", "--name", name, "--state-dir", self.cluster.root / folder, "--join", token],
            capture_output=True, text=True, timeout=60)
        taken = join("n1", "thief")
        self.assertEqual(taken.returncode, 4, taken.stderr)
        self.assertIn("n1", taken.stderr)
        bad = subprocess.run([BIN / "musterd", "agent", "--state-dir", self.cluster.root / "x", "--join", "MUSTER_join_nonsense"],
                             capture_output=True, text=True, timeout=60)
        self.assertNotEqual(bad.returncode, 0)
        self.assertIn("fix:", bad.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
