"""scripts/testnet.sh: hosts reach each other, are cut, healed, crashed; nothing stays behind."""
import os
import socket
import subprocess
import sys
import unittest

SCRIPT = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "scripts", "testnet.sh"
)
LISTEN = (
    "import socket; s = socket.create_server(('0.0.0.0', 7000)); print('ready', flush=True)\n"
    "while True: c = s.accept()[0]; c.sendall(b'hello'); c.close()"
)
DIAL = (
    "import socket, sys; s = socket.socket(); s.settimeout(float(sys.argv[2]));"
    "s.connect((sys.argv[1], 7000));"
    "print(s.recv(9).decode())"
)


class TestNet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefix = "t%d" % os.getpid()
        cls.addClassCleanup(lambda: cls.net("down"))
        made = cls.net("up", "3")
        if made.returncode == 3:
            raise unittest.SkipTest(made.stderr.strip())
        assert made.returncode == 0, made.stderr

    @classmethod
    def net(cls, *words, prefix=None):
        return subprocess.run(
            [SCRIPT, "-p", prefix or cls.prefix] + list(words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def dial(self, host, address, wait="5"):
        return self.net("exec", host, sys.executable, "-c", DIAL, address, wait).stdout.strip()

    def listen(self, host):
        server = subprocess.Popen(
            [SCRIPT, "-p", self.prefix, "exec", host, sys.executable, "-c", LISTEN],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.addCleanup(server.stdout.close)
        self.assertEqual(server.stdout.readline(), "ready\n")
        return server

    def test_cut_heal_crash(self):
        server = self.listen("1")
        self.assertEqual(self.dial("2", "10.77.0.1"), "hello")
        self.assertEqual(self.dial("3", "10.77.0.1"), "hello")
        self.assertEqual(self.net("cut", "2").returncode, 0)
        self.assertEqual(self.dial("2", "10.77.0.1", "0.3"), "")
        self.assertEqual(self.dial("3", "10.77.0.1"), "hello", "the others are as they were")
        self.assertEqual(self.net("heal", "2").returncode, 0)
        self.assertEqual(self.dial("2", "10.77.0.1"), "hello")
        self.assertEqual(self.net("crash", "1").returncode, 0)
        self.assertEqual(server.wait(), -9)
        self.assertEqual(self.net("list").stdout.split("\n")[0], "1 10.77.0.1 0")

    def test_the_machine_itself_is_not_reached(self):
        with socket.create_server(("127.0.0.1", 0)) as here:
            port = here.getsockname()[1]
            dial = DIAL.replace("7000", str(port))
            self.assertNotEqual(
                self.net("exec", "2", sys.executable, "-c", dial, "127.0.0.1", "1").returncode, 0
            )

    def test_two_prefixes_and_wrong_use(self):
        other = self.prefix + "b"
        self.assertEqual(self.net("up", "2", prefix=other).returncode, 0)
        self.assertEqual(self.net("up", "2").returncode, 1, "in use")
        self.assertEqual(self.net("down", prefix=other).returncode, 0)
        self.assertEqual(self.net("list", prefix=other).stdout, "")
        self.assertEqual(len(self.net("list").stdout.splitlines()), 3)
        for words, code in (
            (("up", "0"), 2),
            (("up", "1001"), 2),
            (("up", "x"), 2),
            (("cut", "9"), 1),
            (("nonsense",), 2),
        ):
            self.assertEqual(self.net(*words).returncode, code, words)
        self.assertEqual(self.net("list", prefix="../x").returncode, 2)
        self.assertFalse([name for name in os.listdir("/run/netns") if name.startswith(other)])


if __name__ == "__main__":
    unittest.main()
