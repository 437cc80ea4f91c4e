"""A real cluster of real programs for tests: a controller and agents on loopback, in a folder of its own.

Everything it starts is ended by it, by pid. Conditions are waited for, never slept for.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("MUSTER_BIN", SOURCE / "build/release/bin"))
PYTHON = "/usr/bin/python3"


def wait_for(condition, what, limit=60.0):
    """The first true value of condition(); the limit only ends a test that would hang."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not reached within {limit:g} s: {what() if callable(what) else what}")
        time.sleep(0.02)


class Ended(Exception):
    """A command that ended with another exit code than the test wanted."""


class Cluster:
    def __init__(self, agents=1, lease=None, agent_options=None, controller_options=None, state=None, net=None):
        """net: the prefix of a scripts/testnet.sh with a host more than agents; agents are on hosts 2 and up."""
        self.net = net
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="muster-e2e-"))
        self.state = pathlib.Path(state) if state else self.root / "controller"
        self.socket = self.root / "api.sock"
        self.lease = lease or {"heartbeat": "200ms", "suspect": "1s", "lost": "2s", "fence": "4s"}
        self.agent_options = agent_options or {}
        self.controller_options = controller_options or {}
        self.wanted_agents = agents
        self.controller = None
        self.agent_port = 0
        self.agents = {}
        self.env = dict(os.environ, MUSTER_SERVER=f"unix:{self.socket}", NO_COLOR="1",
                        HOME=str(self.root), XDG_CONFIG_HOME=str(self.root / "config"))

    def host(self, number):
        """The address of a host, and the words before a command that runs there (a host name of its own too)."""
        if not self.net:
            return "127.0.0.1", []
        # Not ip netns exec, which hides the control groups.
        return (f"10.77.0.{number}", ["nsenter", f"--net=/run/netns/{self.net}-host{number}", "unshare", "--uts", "sh", "-c",
                                      'hostname "$0"; exec "$@"', f"host{number}"])

    # ---- start and stop ----------------------------------------------------------------------

    def __enter__(self):
        try:
            self.start_controller()
            for number in range(1, self.wanted_agents + 1):
                self.start_agent(number)
            self.wait_nodes(self.wanted_agents)
        except BaseException:
            self.print_logs()
            self.close()
            raise
        return self

    def __exit__(self, kind, error, trace):
        if error is not None:
            self.print_logs()
        self.close()

    def start_controller(self, wait=True):
        address, on = self.host(1)
        config = {"state_dir": str(self.state), "socket": str(self.socket), "listen": "",
                  "agents": f"{address}:{self.agent_port}", "advertise": address, "lease": self.lease,
                  **self.controller_options}
        path = self.root / "controller.yaml"
        path.write_text(json.dumps(config))
        with open(self.root / "controller.log", "ab") as log:
            self.controller = subprocess.Popen([*on, BIN / "musterd", "controller", "--config", path], stderr=log, stdout=log,
                                               stdin=subprocess.DEVNULL)
        if wait:
            self.wait_serving()

    def wait_serving(self):
        def serving():
            if self.controller.poll() is not None:
                raise AssertionError(f"the controller ended with {self.controller.returncode}")
            health = self.api("/v1/health", check=False)
            return health if health and "term" in health else None
        health = wait_for(serving, "the controller serves")
        self.agent_port = int(health["agent_address"].rsplit(":", 1)[1]) if health.get("agent_address") else self.agent_port
        return health

    def start_agent(self, number):
        name = f"n{number}"
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        address, on = self.host(number + 1)
        config = {"name": name, "state_dir": str(folder / "state"), "address": address, "peers": f"{address}:0",
                  **self.agent_options}
        path = folder / "agent.yaml"
        path.write_text(json.dumps(config))
        command = [*on, BIN / "musterd", "agent", "--config", path]
        if not (folder / "joined").exists():
            token = self.muster("token", "create", "--join", "-q").strip()
            command += ["--join", token]
            (folder / "joined").touch()
        with open(folder / "agent.log", "ab") as log:
            self.agents[number] = subprocess.Popen(command, stderr=log, stdout=log, stdin=subprocess.DEVNULL, env=self.env)

    def wait_nodes(self, count):
        def ready():
            nodes = self.api("/v1/nodes")["items"]
            return sum(node["state"] == "ready" for node in nodes) >= count
        wait_for(ready, f"{count} nodes are ready")

    def kill(self, process, how=signal.SIGKILL):
        process.send_signal(how)
        process.wait()

    def task_pids(self, number=None):
        """Supervisors of this cluster's tasks (of one node): each stands in its task's folder."""
        root = str(self.root / f"n{number}" if number else self.root) + "/"
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if (entry / "comm").read_text().strip() == "muster-task" and os.readlink(entry / "cwd").startswith(root):
                        found.append(int(entry.name))
        return found

    def close(self):
        with contextlib.suppress(Exception):
            for job in self.api("/v1/jobs?fields=id&limit=1000")["items"]:
                self.muster("cancel", str(job["id"]), "-y", check=False)
            wait_for(lambda: not self.api("/v1/jobs?fields=id")["items"], "all jobs ended", 15)
        for process in [*self.agents.values(), self.controller]:
            if process and process.poll() is None:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    self.kill(process)
        for pid in self.task_pids():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.root, ignore_errors=True)

    def print_logs(self):
        for path in [self.root / "controller.log", *sorted(self.root.glob("n*/agent.log"))]:
            if path.exists():
                print(f"---- {path.relative_to(self.root)}")
                print(path.read_text(errors="replace")[-6000:])

    # ---- use ---------------------------------------------------------------------------------

    def muster(self, *words, check=True, stdin=None, timeout=120):
        done = subprocess.run([BIN / "muster", *map(str, words)], env=self.env, input=stdin, capture_output=True,
                              text=True, timeout=timeout, cwd=self.root)
        self.stderr = done.stderr
        self.code = done.returncode
        if check and done.returncode != 0:
            raise Ended(f"muster {' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def api(self, path, method="GET", body=None, headers=(), check=True):
        """Straight to the REST API over the socket; parsed JSON, or None when nobody serves."""
        command = ["curl", "-sS", "--max-time", "30", "--unix-socket", str(self.socket), "-X", method]
        for header in headers:
            command += ["-H", header]
        if body is not None:
            command += ["-H", "Content-Type: application/json", "--data-binary", "@-"]
        done = subprocess.run([*command, f"http://muster{path}"], capture_output=True, text=True,
                              input=None if body is None else json.dumps(body), check=False)
        if done.returncode != 0:
            if check:
                raise AssertionError(f"{method} {path}: {done.stderr}")
            return None
        return json.loads(done.stdout) if done.stdout.strip() else {}

    def submit(self, **job):
        return int(self.api("/v1/jobs", "POST", job)["id"])

    def job(self, job_id):
        return self.api(f"/v1/jobs/{job_id}")

    def wait_state(self, job_id, *states, limit=60.0):
        last = {}

        def reached():
            last.update(self.api(f"/v1/jobs/{job_id}", check=False) or {})
            return last if last.get("state") in states else None
        return dict(wait_for(reached, lambda: f"job {job_id} is {states}; it is {last.get('state')}: {last}", limit))

    def logs(self, job_id):
        return self.muster("logs", job_id)
