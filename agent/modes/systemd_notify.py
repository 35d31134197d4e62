"""What systemd hears of us where it has started us: ready, alive while every service progresses, how the node is.

Elsewhere nobody listens (no NOTIFY_SOCKET), and there is no such service. The status begins with one of three words,
which who installs a new version waits for: `healthy`, `starting`, `not healthy`.
"""

import contextlib
import math
import socket
import time
from collections.abc import Callable, Mapping, Sequence

from component.lifecycle import Service, unhealthy
from component.loop import Loop
from component.text import one_line

LOOK_EVERY_S = 1.0
STATUS_LIMIT_BYTES = 512
STUCK_AFTER_S = 10.0
SIGNS_PER_LIMIT = 3  # two of them may be late


def notifiers(
    environ: Mapping[str, str], services: Sequence[Service], status: Callable[[], str]
) -> list["SystemdNotifier"]:
    """The service that tells systemd, or none. services: those before it, whose progress is the sign of life. status:
    one line on how the node is; must not wait."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return []
    return [SystemdNotifier(address, watchdog_s(environ), tuple(services), status)]


def watchdog_s(environ: Mapping[str, str]) -> float:
    """How long systemd waits for a sign of life; infinite where it wants none."""
    text = environ.get("WATCHDOG_USEC", "")
    return int(text) / 1e6 if text.isdecimal() and int(text) else math.inf


class SystemdNotifier:
    """A Service, to be started last: that it starts says that all others have. What systemd does not take at once is
    said again at the next look, so a busy systemd delays nobody."""

    name = "notify"

    def __init__(
        self,
        address: str,
        limit_s: float,
        services: Sequence[Service],
        status: Callable[[], str],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """limit_s: after so long without a sign of life systemd starts us anew."""
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._every_s = limit_s / SIGNS_PER_LIMIT
        self._services = services
        self._status = status
        self._monotonic = monotonic
        self._is_told_ready = False
        self._told = ""
        self._sign_due = -math.inf
        self._loop = Loop("notify", self._turn, stuck_after_s=STUCK_AFTER_S, at_end=self._end, monotonic=monotonic)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def healthy(self, monotonic: float) -> bool:
        return self._loop.healthy(monotonic)

    def _turn(self) -> float:
        monotonic = self._monotonic()
        stuck = unhealthy(self._services, monotonic)
        status = (
            f"does not progress: {', '.join(stuck)}"
            if stuck
            else one_line(self._status(), limit_bytes=STATUS_LIMIT_BYTES)
        )
        lines = [] if self._is_told_ready else ["READY=1"]
        if status != self._told:
            lines.append(f"STATUS={status}")
        alive = not stuck and monotonic >= self._sign_due
        if alive and math.isfinite(self._every_s):
            lines.append("WATCHDOG=1")
        if lines and self._send(lines):
            self._is_told_ready, self._told = True, status
            if alive:
                self._sign_due = monotonic + self._every_s
        return min(LOOK_EVERY_S, self._every_s)

    def _end(self) -> None:
        self._send(["STOPPING=1"])

    def _send(self, lines: Sequence[str]) -> bool:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notice:
            notice.setblocking(False)
            notice.connect(self._address)
            notice.send("\n".join(lines).encode(errors="replace"))
            return True
        return False
