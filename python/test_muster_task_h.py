"""Tests of api/muster_task.h, as C99 and as C++, by the same node and rows as muster.py's."""
import os
import shutil
import subprocess
import tempfile
import unittest

import test_muster
from test_muster import Base, muster

HERE = os.path.dirname(os.path.abspath(__file__))
API = os.path.join(os.path.dirname(HERE), "api")
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-pedantic"]
COMPILERS = {
    "c99": ["cc", "-std=c99", "-D_POSIX_C_SOURCE=200809L"],
    "c++20": ["c++", "-x", "c++", "-std=c++20"],
}


class Probe:
    def __init__(self, binary):
        self.process = subprocess.Popen(
            [binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ)
        )

    def __call__(self, command):
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().decode()
        assert answer.endswith(".\n"), (command, answer)
        return answer[:-2].strip()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


class Header(Base):
    language = "c99"

    @classmethod
    def setUpClass(cls):
        compiler = COMPILERS[cls.language][0]
        if shutil.which(compiler) is None:
            raise unittest.SkipTest("no compiler %s here" % compiler)
        cls.build = tempfile.mkdtemp(prefix="muster-probe")
        cls.addClassCleanup(shutil.rmtree, cls.build, True)
        cls.binary = os.path.join(cls.build, "probe")
        subprocess.run(
            COMPILERS[cls.language]
            + WARNINGS
            + [
                "-DMUSTER_RECONNECT_MS=0",
                "-I",
                API,
                "-pthread",
                "-o",
                cls.binary,
                os.path.join(HERE, "muster_task_probe.c"),
            ],
            check=True,
        )

    def probe(self):
        probe = Probe(self.binary)
        self.addCleanup(lambda: probe.process.stdin.closed or probe.close())
        return probe

    def test_lines(self):
        os.environ["RANK"] = "3"
        node, say = self.node(), self.probe()
        path = self.make("step-7 100%\u00e9", "dir")
        say("progress 120 500 0.31")
        say("progress 121 -1 0.5")
        say("progress -1 5 0.5")
        self.assertEqual(say("checkpoint 7 " + path + "/"), "0")
        say("saved 7")
        say("done")
        self.assertEqual(
            node.lines,
            [
                "progress step=120 total=500 rank=3 loss=0.31 samples_per_s=8123",
                "progress step=121 rank=3 loss=0.5 samples_per_s=8123",
                "checkpoint step=7 path=%s/step-7%%20100%%25\u00e9 rank=3" % self.ckpt,
                "saved step=7",
                "done",
            ],
        )

    def test_checkpoint_sets_the_marker_and_cannot_seal_what_is_not_there(self):
        self.node()
        say = self.probe()
        tree = self.make("step-1", "dir")
        os.makedirs(os.path.join(tree, "deep", "er"))
        file = self.make("step-2.pt", "file")
        self.assertEqual(say("checkpoint 1 " + tree), "0")
        self.assertEqual(say("checkpoint 2 " + file), "0")
        self.assertTrue(os.path.exists(os.path.join(tree, muster.MARKER)))
        self.assertTrue(os.path.exists(file + muster.MARKER))
        self.assertEqual(say("checkpoint 3 %s/step-3" % self.ckpt), "-1")

    def test_the_scan_takes_the_same_as_muster_py(self):
        say = self.probe()
        self.assertEqual(say("latest"), "")
        expected = ""
        for name, kind, complete in test_muster.Checkpoints.SCAN:
            path = self.make(name, kind)
            expected = "%d %s" % (muster.checkpoint_step(path), path) if complete else expected
            self.assertEqual(say("latest"), expected, name)

    def test_what_the_node_said_is_verified_on_disk(self):
        say = self.probe()
        below = self.make("step-19", "dir+marker")
        for name, kind, answer in (
            ("step-21", "dir", "19 " + below),
            ("step-22.pt", "file", None),
            ("step-23.pt.tmp", "file", "19 " + below),
            ("step-18", "dir+marker", "19 " + below),
        ):
            path = self.make(name, kind)
            say("env MUSTER_LATEST_CHECKPOINT=" + path)
            self.assertEqual(say("latest"), answer or "22 " + path, name)

    def test_outside_muster_nothing_happens(self):
        for name in ("MUSTER_SOCKET", "MUSTER_PREEMPT_FILE", "MUSTER_CHECKPOINT_DIR"):
            del os.environ[name]
        say = self.probe()
        say("progress 1 2 3")
        say("saved 1")
        say("done")
        self.assertEqual(say("stop"), "0")
        self.assertEqual(say("latest"), "")
        self.assertEqual(say("checkpoint 1 /nonexistent/step-1"), "0")

    def test_announcements_are_repeated_to_a_node_that_came_back(self):
        say = self.probe()
        say("saved 5")  # No socket yet.
        first = self.node(answer=lambda line: None)
        path = self.make("step-5", "dir")
        self.assertEqual(say("checkpoint 5 " + path), "0")
        first.close()
        second = self.node(
            answer=lambda line: "error rate limit" if len(second.lines) == 0 else "ok"
        )
        say("progress 6 9 0.5")
        second.wait_for(lambda n: len(n.lines) == 3)
        self.assertEqual(
            sorted(second.lines),
            [
                "checkpoint step=5 path=" + path,
                "progress step=6 total=9 loss=0.5 samples_per_s=8123",
                "saved step=5",
            ],
        )

    def test_a_node_that_stands_still_stops_nothing(self):
        self.node(read=False)
        say = self.probe()
        for step in range(2000):
            say("progress %d 2000 0.5" % step)
        say("done")
        self.assertEqual(say("stop"), "0")

    def test_threads_and_children(self):
        node, say = self.node(), self.probe()
        say("threads")  # More than the socket may hold: some are dropped, none is torn.
        say("done")
        while "done" not in node.lines:
            say("stop")
        self.assertEqual(node.connections, 1)
        say("child 1001")
        say("progress 1002 -1 0.5")
        node.wait_for(
            lambda n: "progress step=1001" in n.lines
            and "progress step=1002 loss=0.5 samples_per_s=8123" in n.lines
        )
        self.assertEqual(node.connections, 2)

    def test_the_notice_by_file_and_by_signal(self):
        self.node()
        by_signal, by_file = self.probe(), self.probe()
        by_signal("watch")
        self.assertEqual(by_signal("stop"), "1")
        open(self.preempt, "w").close()
        self.assertEqual(by_file("stop"), "1")


class HeaderAsCpp(Header):
    language = "c++20"


del Base  # So that it is not collected here again.

if __name__ == "__main__":
    unittest.main()
