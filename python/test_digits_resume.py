"""examples/digits_ddp.py is hurt and started again, and ends with the weights of an unhurt run.

Bit for bit. Plain processes, no Muster; the node's end of the socket is test_muster's. Needs
Debian's python3-torch and python3-sklearn.
"""
import importlib.util
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from test_muster import Node

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(os.path.dirname(HERE), "examples", "digits_ddp.py")
WORLD = 3
STEPS = 120


@unittest.skipUnless(
    importlib.util.find_spec("torch") and importlib.util.find_spec("sklearn"),
    "python3-torch and python3-sklearn are not installed",
)
class Resume(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix="dg")
        cls.addClassCleanup(shutil.rmtree, cls.home, True)
        cls.expected = cls.result_of(cls.finish(cls.start("calm")))

    @classmethod
    def start(cls, name, step_ms=0, notice=None):
        """All ranks of one attempt; their checkpoints and sockets are below `name`."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        home = os.path.join(cls.home, name)
        os.makedirs(os.path.join(home, "ckpt"), exist_ok=True)
        ranks = []
        for rank in range(WORLD):
            env = {k: v for k, v in os.environ.items() if not k.startswith(("MUSTER_", "PET_"))}
            env.update(
                MUSTER_NODE_RANK=str(rank),
                MUSTER_NUM_NODES=str(WORLD),
                MUSTER_MASTER_ADDR="127.0.0.1",
                MUSTER_MASTER_PORT=str(port),
                GLOO_SOCKET_IFNAME="lo",
                MUSTER_CHECKPOINT_DIR=os.path.join(home, "ckpt"),
                MUSTER_SOCKET=os.path.join(home, "s%d" % rank),
            )
            if notice:
                env["MUSTER_PREEMPT_FILE"] = notice
            ranks.append(
                subprocess.Popen(
                    [
                        sys.executable,
                        SCRIPT,
                        "--steps",
                        str(STEPS),
                        "--checkpoint-every",
                        "10",
                        "--step-ms",
                        str(step_ms),
                    ],
                    env=env,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
        cls.addClassCleanup(lambda: [rank.kill() for rank in ranks if rank.poll() is None])
        return ranks

    @classmethod
    def finish(cls, ranks):
        outputs = [rank.communicate(timeout=120)[0] for rank in ranks]
        codes = [rank.returncode for rank in ranks]
        assert codes == [0] * WORLD, (codes, outputs)
        return outputs[0]

    @staticmethod
    def result_of(output):
        weights = re.search(r"^weights ([0-9a-f]{16})$", output, re.M).group(1)
        accuracy = float(re.search(r"^test accuracy ([0-9.]+) ", output, re.M).group(1))
        return weights, accuracy

    def newest(self, name):
        steps = [
            int(m.group(1))
            for m in (
                re.match(r"step-(\d+)\.pt\.muster-complete\Z", entry)
                for entry in os.listdir(os.path.join(self.home, name, "ckpt"))
            )
            if m
        ]
        return max(steps, default=-1)

    def wait_until(self, ready, ranks):
        while not ready():
            self.assertTrue(all(rank.poll() is None for rank in ranks), "a rank ended too early")
            time.sleep(0.01)  # A pause of the poll: nobody tells when a file appears.

    def test_accuracy(self):
        self.assertGreaterEqual(self.expected[1], 0.95)

    def test_killed_at_random_moments(self):
        seed = int(os.environ.get("SEED", time.time()))
        dice = random.Random(seed)
        print("SEED=%d" % seed, file=sys.stderr)
        for victim, after in (
            (0, dice.randint(0, 40)),
            (dice.randint(1, WORLD - 1), dice.randint(50, 90)),
        ):
            ranks = self.start("hurt", step_ms=5)
            self.wait_until(lambda: self.newest("hurt") >= after, ranks)
            time.sleep(dice.uniform(0, 0.06))  # Anywhere in a step, or in a save.
            ranks[victim].kill()
            for rank in ranks:  # The survivors fail by themselves.
                rank.communicate(timeout=60)
            self.assertEqual([r.returncode == 0 for r in ranks], [False] * WORLD)
            self.assertLess(self.newest("hurt"), STEPS)
        ranks = self.start("hurt")
        output = self.finish(ranks)
        self.assertIn("resuming from", output)
        self.assertEqual(self.result_of(output), self.expected, "SEED=%d" % seed)

    def test_asked_to_stop_it_saves_says_so_and_goes_on_later(self):
        notice = os.path.join(self.home, "notice")
        home = os.path.join(self.home, "asked")
        os.makedirs(home)
        nodes = [Node(os.path.join(home, "s%d" % rank)) for rank in range(WORLD)]
        for node in nodes:
            self.addCleanup(node.close)
        ranks = self.start("asked", step_ms=5, notice=notice)
        nodes[0].wait_for(lambda n: any(line.startswith("checkpoint step=10 ") for line in n.lines))
        with open(notice, "w") as file:
            file.write("preempt reason=test\n")
        self.finish(ranks)
        step = self.newest("asked")
        self.assertLess(step, STEPS)
        for rank, node in enumerate(nodes):
            node.wait_for(lambda n: "saved step=%d" % step in n.lines)
            self.assertTrue(
                any(
                    re.match(
                        r"progress step=\d+ total=120 rank=%d loss=\S+ samples_per_s=" % rank, line
                    )
                    for line in node.lines
                ),
                node.lines[-5:],
            )
            self.assertNotIn("done", node.lines)
        os.unlink(notice)
        output = self.finish(self.start("asked"))
        self.assertIn("step %d" % step, output)
        self.assertEqual(self.result_of(output), self.expected)
        for node in nodes:
            node.wait_for(lambda n: "done" in n.lines)

    def test_sigterm_ends_a_rank(self):
        ranks = self.start("term", step_ms=5)
        self.wait_until(lambda: self.newest("term") >= 0, ranks)
        for rank in ranks:
            rank.send_signal(signal.SIGTERM)
        for rank in ranks:
            rank.communicate(timeout=60)
        self.assertIn(-signal.SIGTERM, [rank.returncode for rank in ranks])
        self.assertNotIn(0, [rank.returncode for rank in ranks])


if __name__ == "__main__":
    unittest.main()
