"""Runs a command with a deadline that holds: its own session, killed as a group, output capped, nothing left behind.

What is promised: the call returns at the latest `KILL_WAIT_S` after the deadline, also when the command ignores
SIGTERM, closes its output, leaves children behind that hold the pipes, or prints without end. What cannot be promised:
a process in uninterruptible sleep (a dead NFS server) outlives SIGKILL; it is reported in ExecTimeout.leftover. And a
command whose file cannot even be opened for execution (the same server) keeps its caller waiting, but nobody else.
"""

import contextlib
import errno
import math
import os
import select
import signal
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from agent.processes.proc import ENV_COMMAND, end_marked, first_to_go
from agent.processes.spawn import Process, spawn

OUTPUT_LIMIT_BYTES = 10 * 2**10  # the kubelet reads as much of a command's output, or of a response's body
KILL_WAIT_S = 1.0
DRAIN_S = 0.1  # what a command wrote before it ended is in the pipe; its children may hold the pipe open for ever
STEP_S = 0.005
SUSPECT_S = 1.0
ALL_AGAIN_S = 1.0  # in less no machine starts so many processes that their numbers come again
POLL_S = 0.05  # only where the kernel has no pidfd
# So long only the end of a command is waited for: most end sooner, and each of their two outputs would wake us as well.
# What they write is in the pipes; who writes more than those hold waits as long.
SHORT_S = 0.02
LONGEST_WAIT_S = 3600.0  # of one look at the pipes: what poll takes is limited
_READ_BYTES = 64 * 2**10

_MARK = f"{ENV_COMMAND}={uuid.uuid4()}"  # of this process; its commands are numbered
_numbers = count()
_lock = threading.Lock()
_own: set[int] = set()  # pids of commands that were started and not yet reaped
_leftovers: dict[int, Process] = {}  # those of _own that outlived SIGKILL
_starting = 0  # how many commands are between fork and _own
_suspects: dict[int, float] = {}  # ended children that may be commands between fork and _own, since when (monotonic)


class RuntimeUnavailable(Exception):  # noqa: N818 - a state of the runtime, not a mistake
    """The command could not be run at all: no such file, no such container, no runtime."""


class ExecTimeout(Exception):  # noqa: N818
    """The command was killed at its deadline. `leftover` is its process where SIGKILL did not end it."""

    def __init__(
        self,
        command: Sequence[str],
        timeout_s: float,
        *,
        output: bytes = b"",
        leftover: Process | None = None,
    ) -> None:
        super().__init__(f'command timed out: "{" ".join(command)}" timed out after {go_duration(timeout_s)}')
        self.command = tuple(command)
        self.timeout_s = timeout_s
        self.output = output
        self.leftover = leftover


@dataclass(frozen=True, slots=True)
class Completed:
    """`exit_code` is negative for a command that a signal ended, as in subprocess."""

    exit_code: int
    stdout: bytes
    stderr: bytes


@dataclass(slots=True)
class _Capture:
    """What comes out of the pipes, by descriptor; of each as much as fits."""

    limit_bytes: int
    kept: dict[int, bytearray] = field(default_factory=dict)

    def read(self, fd: int) -> bool:
        """Reads what is there, keeps what fits; False at the end of the stream."""
        try:
            block = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        kept = self.kept[fd]
        kept += block[: max(0, self.limit_bytes - len(kept))]
        return bool(block)


def go_duration(seconds: float) -> str:
    """Seconds as Go prints a time.Duration of a second or more: 1s, 1m30s, 1.5s."""
    whole, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(whole), 60)
    text = f"{rest:.9f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def run_command(
    command: Sequence[str],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
    sweep: bool = False,
) -> Completed:
    """Runs `command` without a shell and without input; stdout and stderr are kept up to the limit each.

    When the command ends, what it left in its process group is killed too; with `sweep` also what made a session of its
    own, by a mark in its environment, and where memory runs out the command goes first. Raises ExecTimeout, and
    RuntimeUnavailable when it could not be started, or when what it left could not be looked for.
    """
    began = time.monotonic()
    deadline = began + timeout_s
    mark = f"{_MARK}-{next(_numbers)}" if sweep else ""
    lacks: str | None = None
    process = _spawn(command, env, cwd, mark)
    capture = _Capture(output_limit_bytes)
    try:
        ended = _follow(process, capture, deadline)
    finally:
        _kill_group(process)
        if sweep:
            at_once = time.monotonic() - began < ALL_AGAIN_S
            lacks = _sweep(mark, process.pid if at_once else None)
    output = [bytes(kept) for kept in capture.kept.values()]
    leftover = not _reap(process)
    if not ended:
        raise ExecTimeout(command, timeout_s, output=b"".join(output), leftover=process if leftover else None)
    if lacks is not None:
        raise RuntimeUnavailable(lacks)
    return Completed(process.returncode, *output)


def _sweep(mark: str, begun_after: int | None) -> str | None:
    """Ends what carries the mark. Returns why that could not be found out, as without a free descriptor."""
    try:
        end_marked({mark.encode()}, begun_after=begun_after)
    except OSError as e:
        return f"what the command left cannot be looked for: {(e.strerror or str(e)).lower()}"
    return None


def reap_orphans() -> int:
    """Reaps ended processes that are ours only because we are process 1 and their parents died. Returns how many.

    Only for a process that starts children through run_command alone: it would take others' exit codes from them.
    While a command is being started its pid is not known yet: then who has ended is left alone for SUSPECT_S, in which
    a command's own thread takes it. So one that cannot even be started, its file being on a dead
    server, does not keep the others from being reaped.
    """
    reaped = 0
    with _lock:
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return reaped
            if found is None or found.si_pid in _own:
                return reaped
            if _starting and time.monotonic() < _suspects.setdefault(found.si_pid, time.monotonic()) + SUSPECT_S:
                return reaped
            _suspects.clear()
            with contextlib.suppress(ChildProcessError):
                os.waitpid(found.si_pid, os.WNOHANG)
                reaped += 1


def kill_running() -> None:
    """Kills the groups of all commands that run now: their callers see them ended by SIGKILL."""
    with _lock:
        _forget_ended()
        for pid in _own:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)


def _spawn(command: Sequence[str], env: Mapping[str, str] | None, cwd: str | None, mark: str) -> Process:
    if not command:
        raise RuntimeUnavailable("exec: the command is empty")
    name = command[0]
    try:
        with _start_counted():
            process = spawn(command, env, cwd, mark)
            with _lock:
                _forget_ended()
                _own.add(process.pid)
        if mark:
            first_to_go(process.pid)
    except FileNotFoundError as e:
        where = "no such working directory" if cwd and e.filename == cwd else "executable file not found"
        raise RuntimeUnavailable(f'exec: "{name}": {where}') from e
    except (OSError, ValueError) as e:
        text = e.strerror or str(e) if isinstance(e, OSError) else str(e)
        raise RuntimeUnavailable(f'exec: "{name}": {text.lower()}') from e
    return process


@contextlib.contextmanager
def _start_counted() -> Iterator[None]:
    """No lock is held while a command starts: that may take for ever."""
    global _starting
    with _lock:
        _starting += 1
    try:
        yield
    finally:
        with _lock:
            _starting -= 1


def _forget_ended() -> None:
    """Leftovers that have ended by now: their pids may be somebody else's. With the lock held."""
    for pid in [pid for pid, process in _leftovers.items() if process.poll() is not None]:
        del _leftovers[pid]
        _own.discard(pid)


def _follow(process: Process, capture: _Capture, deadline: float) -> bool:
    """Reads output until the command ends, then what is left of it; False when the deadline came first."""
    pidfd = _pidfd(process.pid)
    try:
        poll = select.poll()
        for stream in (process.stdout, process.stderr):
            assert stream is not None  # noqa: S101 - both were asked for as pipes
            fd = stream.fileno()
            os.set_blocking(fd, False)
            capture.kept[fd] = bytearray()
            poll.register(fd, select.POLLIN)
        if pidfd is not None:
            poll.register(pidfd, select.POLLIN)
        pipes = set(capture.kept)
        short = pidfd is not None and _ends_soon(pidfd, deadline)
        poll_s = POLL_S if pidfd is None else math.inf
        if not short and not _read_until_ended(process.pid, poll, pipes, capture, deadline, poll_s):
            return False
        if pidfd is not None:
            poll.unregister(pidfd)
        _drain(poll, pipes, capture, min(deadline, time.monotonic() + DRAIN_S))
        return True
    finally:
        if pidfd is not None:
            os.close(pidfd)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _ends_soon(pidfd: int, deadline: float) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(1000 * min(SHORT_S, max(0.0, deadline - time.monotonic()))))


def _read_until_ended(
    pid: int, poll: select.poll, pipes: set[int], capture: _Capture, deadline: float, poll_s: float
) -> bool:
    """False when the deadline came first. `poll_s`: how often to look where the end wakes nobody."""
    while not _has_ended(pid):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return False
        _read(poll, pipes, capture, min(poll_s, left_s))
    return True


def _drain(poll: select.poll, pipes: set[int], capture: _Capture, until: float) -> None:
    """Reads what is in the pipes, to their ends; children of the command may keep those open."""
    for fd in list(pipes):  # most have said nothing, or are at their end after one block
        if not capture.read(fd) or (capture.kept[fd] and not capture.read(fd)):
            poll.unregister(fd)
            pipes.discard(fd)
    while pipes and (left_s := until - time.monotonic()) > 0:
        _read(poll, pipes, capture, left_s)


def _read(poll: select.poll, pipes: set[int], capture: _Capture, timeout_s: float) -> None:
    """`pipes`: those that have not ended."""
    for fd, _ in poll.poll(math.ceil(1000 * min(timeout_s, LONGEST_WAIT_S))):
        if fd in pipes and not capture.read(fd):
            poll.unregister(fd)
            pipes.discard(fd)


def _has_ended(pid: int) -> bool:
    """Looks without reaping: a pid that is still a zombie cannot be given to a stranger before its group is killed."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _kill_group(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _reap(process: Process) -> bool:
    """Takes the ended command and those of its group that became our children; False if the command is still there."""
    deadline = time.monotonic() + KILL_WAIT_S
    while not _has_ended(process.pid):
        if time.monotonic() >= deadline:
            with _lock:
                _leftovers[process.pid] = process
            return False
        time.sleep(STEP_S)
    with _lock:
        process.wait()
        _own.discard(process.pid)
    deadline = time.monotonic() + DRAIN_S
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-process.pid, os.WNOHANG) == (0, 0):
                time.sleep(STEP_S)
        except OSError as e:
            return e.errno == errno.ECHILD
    return True
