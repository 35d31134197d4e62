"""gunicorn in the foreground, for both commands of the extender: a bound socket, its user, its log lines, its end."""

import contextlib
import ctypes
import logging
import os
import select
import signal
import socket
from typing import Any

from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger

from component.command import EXIT_INTERRUPTED

log = logging.getLogger(__name__)

PR_SET_DUMPABLE = 4  # prctl(2)


class StartError(Exception):
    """The server cannot start. The text is one line with cause and remedy. usage: whether the configuration is at
    fault."""

    def __init__(self, text: str, *, usage: bool) -> None:
        super().__init__(text)
        self.usage = usage


def listen(address: str, port: int, *, section: str = "listen", shared: bool = False) -> socket.socket:
    """Returns a bound socket. gunicorn itself would retry a taken port for five seconds with ten log lines.

    section: of the settings, for the remedy. shared: the port may be shared with processes of the same user that allow
    it, too. Raises StartError.
    """
    where = f"{address} port {port}"
    try:
        family, kind, protocol, _, full = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(full)
    except (OSError, UnicodeError) as e:  # UnicodeError for an invalid name such as "a..b"
        cause = getattr(e, "strerror", None) or str(e)
        remedy = f"change {section}.address or {section}.port"
        if isinstance(e, PermissionError):
            remedy += ", or start as root with the capability NET_BIND_SERVICE"
        text = f"cannot listen on {where}: {cause}; {remedy}"
        raise StartError(text, usage=False) from e
    return listener


def become(user: int) -> None:
    """Makes this process run as that user and group, without any privilege to undo it. Raises StartError.

    Called after the port is bound: a port below 1024 needs root, and code that reads requests must not run as root. A
    process that is that user already stays as it is.
    """
    if os.getresuid() == (user, user, user):
        return
    try:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError as e:
        cause = f"user {os.geteuid()} cannot become user {user}: {e.strerror}"
        remedy = "start as root with the capabilities SETUID and SETGID, or leave listen.user out"
        raise StartError(f"{cause}; {remedy}", usage=False) from e
    # The kernel hides the memory of a former root process from its new user, and with it the process's own
    # /proc/self/fd.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def log_address(arbiter: Any) -> None:  # noqa: ANN401 - gunicorn's Arbiter
    """Hook when_ready: logs the address. Connections are accepted from now on, and answered when the worker runs."""
    for listener in arbiter.LISTENERS:
        address, port = listener.getsockname()[:2]
        log.info("listening", extra={"address": address, "port": port})


class GunicornLog(Logger):  # type: ignore[misc]
    """Sends gunicorn's lines to readygate's log handler."""

    def setup(self, cfg: Any) -> None:  # noqa: ANN401
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


class Master(Arbiter):  # type: ignore[misc]
    """Handles a signal at once. Ctrl-C stops as cleanly as SIGTERM, and the exit code reports Ctrl-C."""

    interrupted = False

    def init_signals(self) -> None:
        super().init_signals()
        self._woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)

    def wait_for_signals(self, timeout: float = 1.0) -> list[int]:
        """Upstream's method waits at a lock: a signal just before is handled only after the timeout."""
        select.select([self._woken], [], [], timeout if self.SIG_QUEUE.empty() else 0)
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)
        signals: list[int] = super().wait_for_signals(timeout=0)
        return signals

    def handle_int(self) -> None:
        self.interrupted = True
        raise StopIteration


def run(master: Master) -> int:
    """Serves until SIGTERM (0) or SIGINT (130). Also returns in the worker, with its exit code."""
    try:
        master.run()
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 0
        return EXIT_INTERRUPTED if master.interrupted and code == 0 else code
    return 0
