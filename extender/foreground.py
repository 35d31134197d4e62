"""gunicorn in the foreground, as both commands of the extender run it: a bound socket, its log lines, how it ends."""

import contextlib
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


class StartError(Exception):
    """The server cannot start. One line with cause and remedy. usage: whether the configuration is at fault."""

    def __init__(self, text: str, *, usage: bool) -> None:
        super().__init__(text)
        self.usage = usage


def listen(address: str, port: int, *, section: str = "listen") -> socket.socket:
    """A bound socket. Here and not in gunicorn, which tries a taken port for five seconds and says so ten times.

    section: of the settings, for the remedy. Raises StartError.
    """
    where = f"{address} port {port}"
    try:
        family, kind, protocol, _, full = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(full)
    except (OSError, UnicodeError) as e:  # the latter for a name that is none, "a..b"
        cause = getattr(e, "strerror", None) or str(e)
        text = f"cannot listen on {where}: {cause}; change {section}.address or {section}.port"
        raise StartError(text, usage=False) from e
    return listener


def log_address(arbiter: Any) -> None:  # noqa: ANN401 - gunicorn's Arbiter
    """Hook when_ready: connections are taken from now on, and answered when the worker is up."""
    for listener in arbiter.LISTENERS:
        address, port = listener.getsockname()[:2]
        log.info("listening", extra={"address": address, "port": port})


class GunicornLog(Logger):  # type: ignore[misc]
    """gunicorn's own lines through our handler."""

    def setup(self, cfg: Any) -> None:  # noqa: ANN401
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


class Master(Arbiter):  # type: ignore[misc]
    """Sees a signal at once. Ctrl-C stops as cleanly as SIGTERM does, and tells the shell that it was Ctrl-C."""

    interrupted = False

    def init_signals(self) -> None:
        super().init_signals()
        self._woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)

    def wait_for_signals(self, timeout: float = 1.0) -> list[int]:
        """Upstream's waits at a lock: a signal that comes just before it does is seen only when the time is over."""
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
