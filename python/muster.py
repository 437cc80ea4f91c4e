"""What a training script tells Muster, and hears from it.

One file, standard library, Python 3.8 or later.

    import muster
    start = muster.latest_checkpoint()            # a path, or None
    for step in range(first, total):
        ...
        muster.progress(step, total, loss=loss)
        if step % 100 == 0 or muster.should_stop():
            muster.save(step, lambda path: torch.save(state, path))
        if muster.should_stop():
            muster.saved(step)
            sys.exit(0)
    muster.done()

Outside Muster every call is a no-op (save() still saves if it is given a directory). No call raises
because Muster is away, and none waits for it more than 50 ms; syncing a checkpoint to disk takes as
long as the disk takes. Threads and forks are safe: each process has its own connection.
The protocol is api/task-protocol.md.
"""
import contextlib
import errno
import logging
import math
import os
import re
import select
import shutil
import signal
import socket
import threading
import time

__all__ = (
    "active progress checkpoint save latest_checkpoint checkpoint_step checkpoint_dir should_stop"
    " notice watch_signal saved done"
).split()

MARKER = ".muster-complete"
LINE_MAX = 4096
STEP_MAX = 2**53 - 1
WAIT_MAX_S = 0.05  # The longest a call waits for the node.
RECONNECT_S = 1.0
NOTICE_POLL_S = 0.05  # should_stop() looks at the file at most this often.

_NAME = re.compile(r"step-([0-9]{1,16})(?:\.(?!(?:tmp|partial)\Z)[A-Za-z0-9]{1,16})?\Z")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}\Z")
_UNSAFE = re.compile(rb"[\x00-\x20%\x7f]")
_log = logging.getLogger("muster")


# --- the line protocol ---------------------------------------------------------------------------


def _escape(text):
    raw = str(text).encode("utf-8", "replace")
    return _UNSAFE.sub(lambda m: b"%%%02X" % m.group()[0], raw)


def _line(verb, pairs):
    """A line of the protocol, or None if it would be longer than the node takes."""
    parts = [verb.encode()]
    parts += [key.encode() + b"=" + _escape(value) for key, value in pairs]
    line = b" ".join(parts) + b"\n"
    return line if len(line) <= LINE_MAX else None


def _number(value):
    """The decimal text of a finite number (also of a numpy or torch scalar), else None."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None
    return "%.10g" % number if math.isfinite(number) else None


def _step(value):
    step = int(value)
    if not 0 <= step <= STEP_MAX:
        raise ValueError("muster: step %d is not within 0..2^53-1" % step)
    return step


class _Link:
    """The connection of this process to its node. Never raises, never waits longer than asked.

    The lock is never held while waiting for the node. A signal handler may find it taken by the
    code it interrupted: then what must not be lost stays in _new for the next call.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._sock = None
        self._path = None
        self._next_try = 0.0
        self._tail = b""  # The unsent rest of a line that the socket took in part.
        self._unread = b""  # The beginning of an answer.
        self._asked = []  # (verb, line) sent and not yet answered, in order.
        self._new = {}  # verb -> line on its way into _keep; set without the lock.
        self._keep = {}  # verb -> line to be repeated until it is answered.
        self._sent = {}  # verb -> the line of _keep that went out on this connection.
        self._hold_until = 0.0  # After "rate limit": no repeats before.
        self._warned = set()

    def after_fork(self):
        """In the child: the parent's connection and its unanswered lines are not ours."""
        sock = self._sock
        self.__init__()
        if sock is not None:
            with contextlib.suppress(OSError):
                os.close(sock.detach())

    def offer(self, line):
        """Sends a line that may be lost."""
        if self._lock.acquire(timeout=0.01):
            try:
                self._pump()
                if self._sock is not None and not self._tail and len(self._asked) < 1024:
                    self._send("progress", line)
            finally:
                self._lock.release()

    def keep(self, verb, line):
        """Sends a line that later calls repeat until it is answered; waits a little for that."""
        self._new[verb] = line
        self.flush(WAIT_MAX_S)

    def poke(self):
        """Gets on with what is unanswered."""
        if self._new or self._keep:
            self.flush(0)

    def flush(self, wait_s):
        """Gets on with what is unanswered, and waits up to wait_s for the answers."""
        end = time.monotonic() + wait_s
        while self._new or self._keep:
            if not self._lock.acquire(timeout=wait_s / 2):
                return
            try:
                self._pump()
                sock, events = self._sock, select.POLLIN | (select.POLLOUT if self._tail else 0)
            finally:
                self._lock.release()
            now = time.monotonic()
            if not self._keep or sock is None or now >= end or now < self._hold_until:
                return
            with contextlib.suppress(OSError, ValueError):  # Closed meanwhile by another thread.
                poll = select.poll()
                poll.register(sock, events)
                poll.poll(max(1, int((end - now) * 1000)))

    # The rest runs under the lock.

    def _pump(self):
        while self._new:
            verb, line = self._new.popitem()
            self._keep[verb] = line
        if self._sock is not None:
            self._read_answers()
        if self._sock is None:
            self._connect()
        if self._sock is not None and self._tail:
            self._push(b"")
        if time.monotonic() < self._hold_until:
            return
        for verb, line in list(self._keep.items()):
            if self._sock is None or self._tail:
                return
            if self._sent.get(verb) != line and self._send(verb, line):
                self._sent[verb] = line
        if self._sock is not None:
            self._read_answers()

    def _connect(self):
        path = os.environ.get("MUSTER_SOCKET")
        now = time.monotonic()
        if not path or (now < self._next_try and path == self._path):
            return
        self._path, self._next_try = path, now + RECONNECT_S
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        except OSError:
            return
        try:
            sock.setblocking(False)
            sock.connect(path)
        except OSError as error:
            sock.close()
            self._warn("away", "no node at %s (%s); training goes on" % (path, error))
            return
        self._sock, self._tail, self._unread = sock, b"", b""
        self._asked, self._sent = [], {}

    def _drop(self):
        if self._sock is not None:
            self._sock.close()
        self._sock = None

    def _send(self, verb, line):
        if not self._push(line):
            return False
        self._asked.append((verb, line))
        return True

    def _push(self, line):
        """True: the line is on its way, whole, or its rest in _tail."""
        data = self._tail + line
        try:
            count = self._sock.send(data, getattr(socket, "MSG_NOSIGNAL", 0))
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR):
                self._drop()
            return False
        self._tail = data[count:]
        return True

    def _read_answers(self):
        while self._sock is not None:
            try:
                data = self._sock.recv(65536)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR):
                    self._drop()
                return
            if not data:
                self._drop()
                return
            lines = (self._unread + data).split(b"\n")
            self._unread = lines.pop()[-LINE_MAX:]
            for answer in lines:
                self._take(answer.decode("utf-8", "replace"))

    def _take(self, answer):
        verb, line = self._asked.pop(0) if self._asked else ("a line", b"")
        kept = self._keep.get(verb) == line  # A newer one may have taken its place since.
        if kept and answer.startswith("error rate limit"):
            self._sent.pop(verb, None)
            self._hold_until = time.monotonic() + 1.0
            return
        if answer != "ok" and kept:
            _log.warning("muster: the node refused %s: %s", verb, answer)
        elif answer != "ok":
            self._warn("refused", "the node refused a line of progress: " + answer)
        if kept:
            del self._keep[verb]

    def _warn(self, what, text):
        if what not in self._warned:
            self._warned.add(what)
            _log.warning("muster: %s", text)


_link = _Link()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_link.after_fork)


# --- what a script calls -------------------------------------------------------------------------


def active():
    """Whether this process runs under Muster."""
    return bool(os.environ.get("MUSTER_SOCKET"))


def _rank():
    for name in ("RANK", "MUSTER_NODE_RANK"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) <= 65535:
            return int(value)
    return None


def progress(step, total=None, **metrics):
    """Where this rank is: its step, of how many, and up to 16 numbers (loss=...)."""
    if not active():
        return
    pairs = [("step", _step(step))]
    if total is not None:
        pairs.append(("total", _step(total)))
    rank = metrics.pop("rank", None)
    rank = _rank() if rank is None else rank
    if rank is not None:
        pairs.append(("rank", int(rank)))
    for key, value in metrics.items():
        text = _number(value)
        if text is not None and _KEY.match(key):
            pairs.append((key, text))
    line = _line("progress", pairs)
    if line is not None:
        _link.offer(line)


def checkpoint(step, path):
    """Makes the checkpoint at `path` complete, and announces it.

    `path` is a file, or a directory whose files are all written. Called by one process, after
    every rank has written its part. Syncs it to disk and sets its marker.
    Raises OSError if the data cannot be synced, and only then. Returns the path.
    """
    step, path = _step(step), os.path.abspath(os.fspath(path))
    if not active() and not checkpoint_dir():
        return path
    _seal(path)
    _announce(step, path)
    return path


def save(step, write, ext="", directory=None, keep=None):
    """Saves atomically and announces: write(path) makes a file or a directory at the path given.

    The result is step-<N> (with `.ext` if asked for) in the checkpoint directory; a crash at any
    moment leaves either nothing under that name or all of it. keep=K then removes the complete
    ones beyond the K newest, and leavings of earlier saves. Returns its path, or None if there is
    neither a checkpoint directory nor `directory`.
    """
    step = _step(step)
    directory = checkpoint_dir() if directory is None else os.fspath(directory)
    if not directory:
        return None
    directory = os.path.abspath(directory)
    if not os.path.isdir(directory):
        os.makedirs(directory, exist_ok=True)
        _sync_path(os.path.dirname(directory))
    name = "step-%d%s" % (step, "." + ext.lstrip(".") if ext else "")
    if not _NAME.match(name):
        raise ValueError("muster: ext %r is not 1 to 16 letters or digits" % ext)
    final = os.path.join(directory, name)
    part = "%s.%d-%d.partial" % (final, os.getpid(), threading.get_ident())
    old = part[: -len(".partial")] + ".old.partial"
    try:
        write(part)
        if not os.path.lexists(part):
            raise FileNotFoundError(errno.ENOENT, "muster: write() made nothing", part)
        _sync_tree(part)
        if os.path.isdir(part):
            _touch_synced(os.path.join(part, MARKER))
        if os.path.lexists(final):
            _unseal(final)
            os.rename(final, old)
        os.rename(part, final)
        _sync_path(directory)
        if not os.path.isdir(final):
            _touch_synced(final + MARKER)
    finally:
        _remove(part)
        _remove(old)
    _announce(step, final)
    if keep is not None:
        _prune(directory, step, max(1, int(keep)))
    return final


def latest_checkpoint():
    """The newest complete checkpoint, verified on disk, or None.

    Ranks that must agree take rank 0's answer by broadcast.
    """
    best = _scan(checkpoint_dir())
    told = os.environ.get("MUSTER_LATEST_CHECKPOINT")
    if told and _announceable(told):
        told_step = checkpoint_step(told)
        if best is None or told_step is None or told_step >= checkpoint_step(best):
            return told
    return best


def checkpoint_step(path):
    """The N of a path that ends in step-N or step-N.ext, or None."""
    match = _NAME.match(os.path.basename(os.fspath(path).rstrip("/")))
    return int(match.group(1)) if match else None


def checkpoint_dir():
    """Where checkpoints belong, or None."""
    return os.environ.get("MUSTER_CHECKPOINT_DIR") or None


def saved(step):
    """After the notice: the state is safe, this task may be stopped.

    Said once a task, when all its ranks are safe.
    """
    if active():
        _link.keep("saved", _line("saved", [("step", _step(step))]))


def done():
    """The work is finished: the exit that follows is completion, even inside a grace period."""
    if active():
        _link.keep("done", _line("done", []))


# --- the notice ----------------------------------------------------------------------------------


class _Notice:
    def __init__(self):
        self.seen = False
        self.next_look = 0.0


_notice = _Notice()


def should_stop():
    """True once Muster has asked this task to save and stop. Costs about 1 µs."""
    if _notice.seen:
        _link.poke()
        return True
    now = time.monotonic()
    if now < _notice.next_look:
        return False
    _notice.next_look = now + NOTICE_POLL_S
    _link.poke()
    path = os.environ.get("MUSTER_PREEMPT_FILE")
    if path and os.path.exists(path):
        _notice.seen = True
    return _notice.seen


def notice():
    """The notice as a dict: reason, deadline in Unix seconds, seconds.

    {} if it came by signal only; None before it.
    """
    if not should_stop():
        return None
    try:
        with open(os.environ["MUSTER_PREEMPT_FILE"], "rb") as file:
            words = file.read(LINE_MAX).split(b"\n")[0].split(b" ")[1:]
    except (KeyError, OSError):
        return {}
    unescape = re.compile(rb"%([0-9A-Fa-f]{2})")
    pairs = (word.partition(b"=") for word in words)
    return {
        key.decode("utf-8", "replace"): unescape.sub(
            lambda m: bytes([int(m.group(1), 16)]), value
        ).decode("utf-8", "replace")
        for key, _, value in pairs
    }


def watch_signal(signum):
    """Takes `signum` as the notice too, and calls the handler it had.

    For a job whose checkpoint.signal is not USR1.
    """
    before = signal.getsignal(signum)

    def handler(number, frame):
        _notice.seen = True
        if callable(before):
            before(number, frame)

    signal.signal(signum, handler)


def _watch_default_signal():
    # Left to itself SIGUSR1 kills; a script that imports this file asks for the notice instead.
    # A handler that is there stays.
    if not (active() or os.environ.get("MUSTER_PREEMPT_FILE")):
        return
    with contextlib.suppress(ValueError, OSError):  # Not in the main thread: the file remains.
        if signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL:
            watch_signal(signal.SIGUSR1)


_watch_default_signal()


# --- completeness on disk ------------------------------------------------------------------------


def _announce(step, path):
    if active():
        home = checkpoint_dir()
        if home and path.startswith(os.path.abspath(home) + "/"):  # Named as the node names it.
            path = home.rstrip("/") + path[len(os.path.abspath(home)) :]
        pairs = [("step", step), ("path", path)]
        rank = _rank()
        if rank is not None:
            pairs.append(("rank", rank))
        line = _line("checkpoint", pairs)
        if line is not None:
            _link.keep("checkpoint", line)


def _seal(path):
    if os.path.isdir(path):
        _sync_tree(path)
        _touch_synced(os.path.join(path, MARKER))
        _sync_path(os.path.dirname(path))
    else:
        _sync_path(path)
        _sync_path(os.path.dirname(path))
        _touch_synced(path + MARKER)


def _unseal(path):
    if os.path.isdir(path) and not os.path.islink(path):
        marker, home = os.path.join(path, MARKER), path
    else:
        marker, home = path + MARKER, os.path.dirname(path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(marker)
        _sync_path(home)


def _touch_synced(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    _sync_path(os.path.dirname(path))


def _sync_path(path):
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        # Some file systems cannot sync a directory and say so; a failed write (EIO, ENOSPC) is
        # never waved through.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP) or not os.path.isdir(path):
            raise
    finally:
        os.close(fd)


def _sync_tree(path):
    if not os.path.isdir(path):
        _sync_path(path)
        return
    for home, _, files in os.walk(path, topdown=False):
        for name in files:
            full = os.path.join(home, name)
            if os.path.isfile(full) and not os.path.islink(full):
                _sync_path(full)
        _sync_path(home)


def _remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _prune(directory, step, keep):
    older = []
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            path = os.path.join(directory, name)
            match = re.match(r"step-([0-9]{1,16})\.(?:.*\.)?partial\Z", name)
            if match and int(match.group(1)) < step:
                _remove(path)
            match = _NAME.match(name)
            if match and int(match.group(1)) <= step and _complete(path):
                older.append((int(match.group(1)), path))
        for _, path in sorted(older)[:-keep]:
            _unseal(path)
            _remove(path)


def _is_plain_file(path):
    return os.path.isfile(path) and not os.path.islink(path)


def _announceable(path):
    """The disk's part of the rule by which a node believes an announcement."""
    if path.rstrip("/").endswith((".tmp", ".partial", MARKER)) or os.path.islink(path):
        return False
    if os.path.isdir(path):
        return _is_plain_file(os.path.join(path, MARKER))
    return os.path.isfile(path) and os.path.getsize(path) > 0


def _complete(path):
    """The disk's part of the scan rule."""
    return _announceable(path) and (os.path.isdir(path) or _is_plain_file(path + MARKER))


def _scan(directory):
    """The complete checkpoint with the largest step among the direct entries, by the scan rule."""
    if not directory:
        return None
    try:
        found = [(_NAME.match(name), name) for name in os.listdir(directory)]
    except OSError:
        return None
    steps = [(int(match.group(1)), os.fsencode(name), name) for match, name in found if match]
    for step, _, name in sorted(steps, reverse=True):
        path = os.path.join(directory, name)
        with contextlib.suppress(OSError):
            if step <= STEP_MAX and _complete(path):
                return path
    return None


if active():
    import atexit

    atexit.register(lambda: _link.flush(WAIT_MAX_S))
