"""`muster bench`: a made-up cluster on this machine, small here; the figures come, and nothing is left behind."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from cluster import BIN, wait_for

SMALL = ["--nodes", "100", "--jobs", "1000", "--quick"]


def bench(*words, **more):
    return subprocess.run([BIN / "muster", "bench", *words], capture_output=True, text=True, timeout=300, **more)


class Bench(unittest.TestCase):
    def test_every_part_gives_its_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            done = bench(*SMALL, "--json", "--folder", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.listdir(folder), [])
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line["what"] for line in lines], [
            "rss_full_mb", "bytes_per_job", "fdatasync_p99_ms", "next_plan_durable_p99_ms", "burst_starts_per_s",
            "gang_starts_per_s", "placements_per_s", "nothing_fits_ms", "next_plan_p99_ms", "why_p99_ms"])
        for line in lines:
            self.assertEqual(line["bench"], "scheduler")
            if line["what"] != "bytes_per_job":  # Of so few it is nothing sure.
                self.assertGreater(line["value"], 0, line)
            self.assertIsNone(line["goal"], "of other sizes than these")

    def test_a_table_for_people(self):
        done = bench(*SMALL, "--only", "burst", "--only=gangs")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()],
                         ["FIGURE", "burst_starts_per_s", "gang_starts_per_s"])

    def test_what_is_wrong_is_told(self):
        for words, says in ((["--nodes", "0"], "nodes 0 is not within 100 and 100000"),
                            (["--only", "bursts"], "'bursts' is not one of its values"),
                            (["--folder", "/nowhere"], "cannot make a folder in /nowhere")):
            done = bench(*words)
            self.assertIn(says, done.stderr)
            self.assertNotEqual(done.returncode, 0)

    def test_ended_by_hand_it_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            running = subprocess.Popen([BIN / "muster", "bench", "--folder", folder], stdout=subprocess.PIPE)
            wait_for(lambda: list(pathlib.Path(folder).glob("*/full/state.db")), "it is under way")
            running.send_signal(signal.SIGINT)
            running.communicate(timeout=60)
            self.assertEqual(running.returncode, 128 + signal.SIGINT)
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
