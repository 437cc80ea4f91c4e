"""Tests of muster.py against a small node that speaks api/task-protocol.md.

Run: /usr/bin/python3 -m unittest -v test_muster
"""
import contextlib
import logging
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import muster  # noqa: E402

# Silence on stderr; assertLogs still sees all.
logging.getLogger("muster").addHandler(logging.NullHandler())

LINE = re.compile(
    rb"[a-z-]{1,32}( [A-Za-z_][A-Za-z0-9_]{0,31}=([!-$&-~\x80-\xff]|%[0-9A-Fa-f]{2})*)*\Z"
)


class Node:
    """The listening end. `answer(line)` gives the reply; None leaves the client waiting."""

    def __init__(self, path, answer=lambda line: "ok", read=True):
        self.path, self.answer, self.read = path, answer, read
        self.lines, self.connections = [], 0
        self._changed = threading.Condition()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(64)
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        peers = {}
        while True:
            wanted = [self._stop_read, self._listener] + (list(peers) if self.read else [])
            for ready in select.select(wanted, [], [])[0]:
                if ready == self._stop_read:
                    for peer in list(peers) + [self._listener]:
                        peer.close()
                    return
                if ready is self._listener:
                    peers[ready.accept()[0]] = b""
                    with self._changed:
                        self.connections += 1
                        self._changed.notify_all()
                    continue
                try:
                    data = ready.recv(65536)
                except ConnectionResetError:  # It ended with answers unread.
                    data = b""
                if not data:
                    del peers[ready]
                    ready.close()
                    continue
                *lines, peers[ready] = (peers[ready] + data).split(b"\n")
                for line in lines:
                    assert LINE.match(line) and len(line) < muster.LINE_MAX, line
                    reply = self.answer(line.decode())
                    with self._changed:
                        self.lines.append(line.decode())
                        self._changed.notify_all()
                    if reply is not None:
                        with contextlib.suppress(OSError):
                            ready.sendall(reply.encode() + b"\n")

    def wait_for(self, test):
        with self._changed:
            if not self._changed.wait_for(lambda: test(self), timeout=20):
                raise AssertionError("never came; the last seen: %r" % self.lines[-9:])

    def close(self):
        os.write(self._stop_write, b"x")
        self._thread.join()
        os.close(self._stop_read)
        os.close(self._stop_write)
        os.unlink(self.path)


class Base(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="mu")
        self.addCleanup(shutil.rmtree, self.home, True)
        self.ckpt = os.path.join(self.home, "ckpt")
        os.mkdir(self.ckpt)
        self.socket = os.path.join(self.home, "s")
        self.preempt = os.path.join(self.home, "notice")
        env = {k: v for k, v in os.environ.items() if not k.startswith("MUSTER_") and k != "RANK"}
        env.update(
            MUSTER_SOCKET=self.socket,
            MUSTER_PREEMPT_FILE=self.preempt,
            MUSTER_CHECKPOINT_DIR=self.ckpt,
        )
        patch = mock.patch.dict(os.environ, env, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        reconnect = mock.patch.object(muster, "RECONNECT_S", 0.0)
        reconnect.start()
        self.addCleanup(reconnect.stop)
        muster._link.after_fork()
        muster._notice.__init__()
        self.addCleanup(muster._link.after_fork)

    def node(self, **options):
        node = Node(self.socket, **options)
        self.addCleanup(lambda: node._thread.is_alive() and node.close())
        return node

    def make(self, name, kind):
        """kind: dir, dir+marker, file, file+marker, empty+marker, link"""
        path = os.path.join(self.ckpt, name)
        if kind.startswith("dir"):
            os.mkdir(path)
            with open(os.path.join(path, "weights"), "w") as file:
                file.write("w")
            if kind == "dir+marker":
                open(os.path.join(path, muster.MARKER), "w").close()
        elif kind == "link":
            other = os.path.join(self.home, "elsewhere")
            os.mkdir(other)
            open(os.path.join(other, muster.MARKER), "w").close()
            os.symlink(other, path)
        else:
            with open(path, "w") as file:
                file.write("" if kind.startswith("empty") else "w")
            if kind.endswith("+marker"):
                open(path + muster.MARKER, "w").close()
        return path


class Lines(Base):
    def test_progress_carries_numbers_only(self):
        node = self.node()
        os.environ["RANK"] = "3"
        muster.progress(
            120, 500, loss=0.31, samples_per_s=8123, nan=float("nan"), text="x", none=None
        )
        node.wait_for(lambda n: n.lines)
        self.assertEqual(
            node.lines, ["progress step=120 total=500 rank=3 loss=0.31 samples_per_s=8123"]
        )

    def test_the_rank_of_a_per_node_launch_is_the_node_rank(self):
        node = self.node()
        os.environ["MUSTER_NODE_RANK"] = "2"
        muster.progress(1)
        node.wait_for(lambda n: n.lines)
        self.assertEqual(node.lines, ["progress step=1 rank=2"])

    def test_a_path_is_escaped(self):
        node = self.node()
        path = self.make("step-7 100%\u00e9\n", "file")
        muster.checkpoint(7, path)
        self.assertEqual(
            node.lines, ["checkpoint step=7 path=%s/step-7%%20100%%25\u00e9%%0A" % self.ckpt]
        )

    def test_a_line_too_long_for_the_node_is_not_sent(self):
        node = self.node()
        muster.progress(1, **{"m%d_%s" % (i, "x" * 20): 1.5 for i in range(400)})
        muster.saved(2)
        self.assertEqual(node.lines, ["saved step=2"])

    def test_a_step_out_of_range_is_the_callers_mistake(self):
        self.node()
        for step in (-1, 2**53):
            with self.assertRaises(ValueError):
                muster.progress(step)

    def test_saved_and_done(self):
        node = self.node()
        muster.saved(9)
        muster.done()
        self.assertEqual(node.lines, ["saved step=9", "done"])


class NodeAway(Base):
    def test_outside_muster_nothing_happens(self):
        for name in ("MUSTER_SOCKET", "MUSTER_PREEMPT_FILE", "MUSTER_CHECKPOINT_DIR"):
            del os.environ[name]
        muster.progress(1, 2, loss=3)
        muster.saved(1)
        muster.done()
        self.assertFalse(muster.should_stop())
        self.assertIsNone(muster.latest_checkpoint())
        self.assertEqual(muster.checkpoint(1, "/nonexistent/step-1"), "/nonexistent/step-1")
        self.assertIsNone(muster.save(1, self.fail))

    def test_a_missing_socket_warns_once_and_fails_nothing(self):
        with self.assertLogs("muster", "WARNING") as logs:
            for step in range(50):
                muster.progress(step)
            muster.done()
        self.assertEqual(len(logs.output), 1, logs.output)

    def test_announcements_are_repeated_to_a_node_that_came_back_at_the_same_path(self):
        first = self.node(answer=lambda line: None)
        path = self.make("step-5", "dir")
        muster.checkpoint(5, path)
        muster.saved(5)
        first.close()
        second = self.node()
        muster.progress(6)
        second.wait_for(lambda n: len(n.lines) == 3)
        self.assertEqual(
            sorted(second.lines),
            ["checkpoint step=5 path=" + path, "progress step=6", "saved step=5"],
        )
        muster.done()
        muster.progress(7)
        second.wait_for(lambda n: n.lines[-1] == "progress step=7")
        self.assertEqual(len(second.lines), 5, "answered lines are not repeated")

    def test_only_the_newest_checkpoint_is_repeated(self):
        with self.assertLogs("muster", "WARNING"):
            for step in (1, 2, 3):
                muster.checkpoint(step, self.make("step-%d" % step, "dir"))
        node = self.node()
        muster.progress(4)
        node.wait_for(lambda n: len(n.lines) == 2)
        self.assertEqual(node.lines[0], "checkpoint step=3 path=%s/step-3" % self.ckpt)

    def test_an_answer_to_an_older_checkpoint_does_not_settle_the_newer(self):
        replies = iter([None, "ok", "ok", "ok"])
        node = self.node(answer=lambda line: next(replies))
        muster.checkpoint(1, self.make("step-1", "dir"))
        muster.checkpoint(2, self.make("step-2", "dir"))  # Its answer counts as the first one's.
        node.close()
        node = self.node()
        muster.progress(3)
        node.wait_for(lambda n: n.lines)
        self.assertIn("checkpoint step=2 path=%s/step-2" % self.ckpt, node.lines)

    def test_a_rate_limit_is_waited_out_and_other_errors_are_final(self):
        replies = iter(
            ["error rate limit of 10 lines a second; repeat later", "ok", "error no such path"]
        )
        node = self.node(answer=lambda line: next(replies, "ok"))
        muster.saved(4)
        self.assertEqual(node.lines, ["saved step=4"])
        muster._link._hold_until = 0.0
        muster.progress(5)
        node.wait_for(lambda n: len(n.lines) == 3)
        self.assertEqual(node.lines[1], "saved step=4")
        with self.assertLogs("muster", "WARNING"):
            muster.done()
            muster.progress(6)
            muster.done()

    def test_a_node_that_stands_still_costs_no_more_than_50_ms_a_call(self):
        self.node(read=False)
        asked = []

        class Poll:  # Notes the wait asked for, and does not wait.
            def register(self, *_):
                pass

            def poll(self, wait_ms):
                asked.append(wait_ms)
                return []

        with mock.patch.object(select, "poll", Poll):
            for step in range(5000):
                muster.progress(step, 10**6, loss=0.1)
            self.assertEqual(asked, [], "progress waits for nothing")
            muster.done()
        self.assertLessEqual(max(asked, default=0), 50)
        self.assertTrue(muster._link._keep)
        self.assertFalse(muster._link._lock.locked())

    def test_a_signal_handler_may_announce_in_the_middle_of_a_call(self):
        node = self.node()
        with muster._link._lock:  # As the code that it interrupted holds it.
            muster.saved(8)
        self.assertEqual(node.lines, [])
        muster.progress(9)
        node.wait_for(lambda n: len(n.lines) == 2)
        self.assertEqual(node.lines, ["saved step=8", "progress step=9"])

    def test_threads_share_one_connection_and_whole_lines(self):
        node = self.node()
        threads = [
            threading.Thread(target=lambda r=rank: [muster.progress(s, rank=r) for s in range(200)])
            for rank in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        muster.done()
        while "done" not in node.lines:  # It may have been sent only now: the socket was full.
            muster.should_stop()
        self.assertEqual(node.connections, 1)

    def test_a_forked_child_has_a_connection_of_its_own(self):
        node = self.node()
        muster.progress(1)
        node.wait_for(lambda n: n.lines)
        child = os.fork()
        if child == 0:
            muster.progress(2)
            os._exit(0)
        os.waitpid(child, 0)
        muster.progress(3)
        node.wait_for(lambda n: len(n.lines) == 3)
        self.assertEqual(sorted(node.lines), ["progress step=%d" % s for s in (1, 2, 3)])
        self.assertEqual(node.connections, 2)


class Checkpoints(Base):
    SCAN = [  # name, kind, is it complete
        ("step-1", "dir+marker", True),
        ("step-2", "dir", False),
        ("step-0000000003", "dir+marker", True),
        ("step-4.pt", "file+marker", True),
        ("step-5.pt", "file", False),
        ("step-6.tmp", "dir+marker", False),
        ("step-7.partial", "dir+marker", False),
        ("step-8.pt", "empty+marker", False),
        ("step-9", "link", False),
        ("step-10.pt.12-34.partial", "file+marker", False),
        ("step--11", "dir+marker", False),
        ("step-12x", "dir+marker", False),
        ("last", "dir+marker", False),
        ("step-99999999999999999", "dir+marker", False),
        ("step-9999999999999999", "dir+marker", False),
    ]

    def test_the_scan_takes_the_largest_complete_one(self):
        self.assertIsNone(muster.latest_checkpoint())
        expected = None
        for name, kind, complete in self.SCAN:
            path = self.make(name, kind)
            expected = path if complete else expected
            self.assertEqual(muster.latest_checkpoint(), expected, name)

    def test_what_the_node_said_is_verified_on_disk(self):
        rows = [  # announced path, kind, believed
            ("step-20", "dir+marker", True),
            ("step-21", "dir", False),
            ("step-22.pt", "file", True),
            ("step-23.pt.tmp", "file", False),
            ("best", "dir+marker", True),
            ("step-24", None, False),
        ]
        below = self.make("step-19", "dir+marker")
        for name, kind, believed in rows:
            path = self.make(name, kind) if kind else os.path.join(self.ckpt, name)
            os.environ["MUSTER_LATEST_CHECKPOINT"] = path
            self.assertEqual(muster.latest_checkpoint(), path if believed else below, name)
            if believed and name.startswith("step-20"):
                below = path

    def test_a_newer_one_on_disk_whose_announcement_was_lost_wins(self):
        os.environ["MUSTER_LATEST_CHECKPOINT"] = self.make("step-1", "dir+marker")
        newer = self.make("step-2", "dir+marker")
        self.assertEqual(muster.latest_checkpoint(), newer)
        self.assertEqual(muster.checkpoint_step(newer), 2)

    def test_save_of_a_file_and_of_a_directory(self):
        node = self.node()

        def write_file(path):
            with open(path, "w") as file:
                file.write("weights")

        def write_tree(path):
            os.makedirs(os.path.join(path, "shards"))
            write_file(os.path.join(path, "shards", "0"))

        self.assertEqual(muster.save(3, write_file, ext="pt"), os.path.join(self.ckpt, "step-3.pt"))
        self.assertEqual(muster.latest_checkpoint(), os.path.join(self.ckpt, "step-3.pt"))
        self.assertEqual(muster.save(4, write_tree), os.path.join(self.ckpt, "step-4"))
        self.assertEqual(
            muster.save(4, write_tree), os.path.join(self.ckpt, "step-4"), "again, over itself"
        )
        self.assertEqual(muster.latest_checkpoint(), os.path.join(self.ckpt, "step-4"))
        self.assertEqual(
            node.lines[:2],
            [
                "checkpoint step=3 path=%s/step-3.pt" % self.ckpt,
                "checkpoint step=4 path=%s/step-4" % self.ckpt,
            ],
        )
        self.assertEqual(
            sorted(os.listdir(self.ckpt)), ["step-3.pt", "step-3.pt" + muster.MARKER, "step-4"]
        )

    def test_a_save_that_fails_leaves_nothing_and_raises(self):
        self.node()

        def broken(path):
            with open(path, "w") as file:
                file.write("half")
            raise OSError("disk full")

        with self.assertRaises(OSError):
            muster.save(1, broken)
        with self.assertRaises(FileNotFoundError):
            muster.save(1, lambda path: None)
        self.assertEqual(os.listdir(self.ckpt), [])

    def test_keep_removes_older_ones_and_leavings(self):
        self.node()
        self.make("step-1.pt.1-2.partial", "file")
        self.make("notes", "file")
        for step in (1, 2, 3, 4):
            muster.save(step, lambda path: os.mkdir(path), keep=2)
        self.assertEqual(sorted(os.listdir(self.ckpt)), ["notes", "step-3", "step-4"])

    def test_killed_at_any_system_call_of_a_save_the_scan_never_finds_half(self):
        """Each call of a save over an existing one is the last: what is found is whole."""
        calls = ["open", "fsync", "rename", "unlink", "close"]
        for kind, ext in (("file", "pt"), ("dir", "")):
            for stop_at in range(1, 60):
                shutil.rmtree(self.ckpt)
                os.mkdir(self.ckpt)
                muster.save(1, self._writer(kind, "old"), ext=ext)
                muster.save(2, self._writer(kind, "old"), ext=ext)
                child = os.fork()
                if child == 0:
                    self._die_at(stop_at, calls)
                    muster.save(2, self._writer(kind, "new"), ext=ext)
                    os._exit(0)
                status = os.waitpid(child, 0)[1]
                found = muster.latest_checkpoint()
                self.assertIsNotNone(found)
                for name in ("a", "b"):
                    part = found if kind == "file" else os.path.join(found, name)
                    with open(part) as file:
                        self.assertIn(
                            file.read(), ("old" * 1000, "new" * 1000), (kind, stop_at, found)
                        )
                if status == 0:
                    break
            else:
                self.fail("the save made more than 60 calls")

    @staticmethod
    def _writer(kind, word):
        def write(path):
            if kind == "dir":
                os.mkdir(path)
            for name in ("a", "b"):
                with open(path if kind == "file" else os.path.join(path, name), "w") as file:
                    file.write(word * 500)
                    file.flush()
                    file.write(word * 500)

        return write

    @staticmethod
    def _die_at(stop_at, names):
        count = [0]

        def wrap(real):
            def call(*args, **kwargs):
                count[0] += 1
                if count[0] == stop_at:
                    os._exit(9)
                return real(*args, **kwargs)

            return call

        for name in names:
            setattr(os, name, wrap(getattr(os, name)))


class Notice(Base):
    def test_the_file_is_the_notice(self):
        self.node()
        self.assertFalse(muster.should_stop())
        self.assertIsNone(muster.notice())
        with open(self.preempt, "w") as file:
            file.write("preempt reason=preempted%20by%20job%2017 deadline=1764577100 seconds=60\n")
        muster._notice.next_look = 0.0
        self.assertTrue(muster.should_stop())
        self.assertEqual(
            muster.notice(),
            {"reason": "preempted by job 17", "deadline": "1764577100", "seconds": "60"},
        )

    def test_the_file_is_not_looked_at_on_every_step(self):
        with mock.patch.object(os.path, "exists", return_value=False) as looked:
            for _ in range(1000):
                muster.should_stop()
        self.assertLess(looked.call_count, 1000)

    def test_a_signal_is_the_notice_and_reaches_the_handler_before(self):
        seen = []
        old = signal.signal(signal.SIGUSR2, lambda number, frame: seen.append(number))
        self.addCleanup(signal.signal, signal.SIGUSR2, old)
        muster.watch_signal(signal.SIGUSR2)
        os.kill(os.getpid(), signal.SIGUSR2)
        self.assertTrue(muster.should_stop())
        self.assertEqual(seen, [signal.SIGUSR2])
        self.assertEqual(muster.notice(), {})

    def test_importing_takes_sigusr1_inside_muster_only(self):
        code = (
            "import sys; sys.path.insert(0, %r); import muster, os, signal;"
            "os.kill(os.getpid(), signal.SIGUSR1);"
            "sys.exit(0 if muster.should_stop() else 1)"
            % os.path.dirname(os.path.abspath(muster.__file__))
        )
        inside = subprocess.run([sys.executable, "-c", code], env=dict(os.environ))
        self.assertEqual(inside.returncode, 0)
        outside = {k: v for k, v in os.environ.items() if not k.startswith("MUSTER_")}
        self.assertEqual(
            subprocess.run([sys.executable, "-c", code], env=outside).returncode, -signal.SIGUSR1
        )


if __name__ == "__main__":
    unittest.main()
