"""What people see of the scheduler, from real programs: queues, why, what if, plan, reclaim, reservations, topology."""
import json
import unittest

from cluster import Cluster, wait_for

QUEUES = """
queues:
  owner: {guarantee: {gpus: 2}, min_runtime: 1s}
  guest: {min_runtime: 1s}
"""


class Faces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        devices = [{"id": f"d{i}", "kind": "h100"} for i in range(2)]
        cls.cluster = Cluster(agents=1, agent_options={"devices": devices, "labels": {"leaf": "l1"}}).__enter__()
        path = cls.cluster.root / "queues.yaml"
        path.write_text(QUEUES)
        cls.cluster.muster("queues", "apply", "-f", path)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__(None, None, None)

    def why(self, job):
        return json.loads(self.cluster.muster("why", job, "-o", "json"))

    def state(self, job):
        return self.cluster.api(f"/v1/jobs/{job}")["state"]

    def test_an_owner_takes_back_what_is_lent_and_everything_is_told(self):
        muster = self.cluster.muster
        guest = self.cluster.submit(run="exec sleep 600", gpus="h100:2", queue="guest", time="1h")
        wait_for(lambda: self.state(guest) == "running", "the guest borrows")
        show = muster("queues", "show", "owner")
        self.assertTrue(all(len(line) <= 80 for line in show.splitlines()), show)
        other = self.cluster.submit(run="exec sleep 600", gpus="h100:2", queue="guest", time="10m")
        wait_for(lambda: self.why(other)["explanation"], "the planner knows it")
        why = self.why(other)
        self.assertEqual(why["explanation"]["holders"][0]["job"], str(guest), why)
        self.assertIn("starts", muster("why", other, "--if", "gpus=1"))

        def stopped():  # Nobody, before the guest's min_runtime is over.
            plan = json.loads(muster("plan", "--queue", "owner", "--gpus", "h100:2", "-o", "json", "--", "true"))
            return [stop["job"] for stop in plan["forecast"]["preempts"]]
        self.assertEqual(wait_for(stopped, "the plan finds whom to stop"), [str(guest)])
        self.assertEqual(self.state(guest), "running", "a plan changes nothing")

        owner = self.cluster.submit(run="exec sleep 600", gpus="h100:2", queue="owner", time="1h")
        wait_for(lambda: self.state(owner) == "running", "the owner has it back")
        attempt = self.cluster.api(f"/v1/jobs/{guest}")["attempts"][0]
        self.assertEqual((attempt["beneficiary"], attempt["preempted_for"]), (str(owner), "reclaim"), attempt)
        self.assertIn("leaf l1\n    n1: rank 0", muster("status", owner, "--topology"))

    def test_a_reservation_keeps_others_away(self):
        muster = self.cluster.muster
        muster("reserve", "work", "--nodes", "n1", "--maintenance", "--start", "now+1h", "--for", "1h", "--every", "week")
        self.assertIn("work", muster("reserve", "list"))
        plan = json.loads(muster("plan", "--time", "3h", "-o", "json", "--", "true"))
        self.assertFalse(plan["forecast"]["starts_now"], plan)
        self.assertEqual(plan["forecast"]["why"]["reservation"], "work", plan)
        self.assertTrue(json.loads(muster("plan", "--time", "10m", "-o", "json", "--", "true"))["forecast"]["starts_now"])
        muster("reserve", "delete", "work", "-y")
        self.assertNotIn("work", muster("reserve", "list"))


if __name__ == "__main__":
    unittest.main()
