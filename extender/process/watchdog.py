"""Logs the stack of the serving thread when it sends no heartbeat: gunicorn kills a hung worker and logs no cause.

A separate thread checks once a second. It needs the GIL: Python takes the GIL from a loop in Python, and a call that
waits releases it. Code in C that holds the GIL for seconds prevents the log line.
"""

import logging
import sys
import threading

from component.loop import Loop
from component.text import one_line

log = logging.getLogger(__name__)

CHECK_EVERY_S = 1.0
SILENT_CHECKS = 5  # in a row without a heartbeat; the loop sends one a second, and gunicorn kills after ten seconds
FRAMES_MAX = 12
STACK_MAX_CHARS = 800


class Watchdog:
    """A service, created by the thread that it watches.

    It counts checks and not seconds: a process that is frozen as a whole makes no checks.
    """

    name = "watchdog"

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._beats = self._last_beats = self._silent_checks = 0
        self._loop = Loop("watchdog", self.check, stuck_after_s=60.0, first_pause_s=CHECK_EVERY_S)
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def beat(self) -> None:
        """The heartbeat, once a second."""
        self._beats += 1

    def check(self) -> float:
        """Logs once for each time that the heartbeats stop. Returns the seconds until the next check."""
        if self._beats != self._last_beats:
            self._last_beats, self._silent_checks = self._beats, 0
        else:
            self._silent_checks += 1
            if self._silent_checks == SILENT_CHECKS:
                log.error("the serving thread hangs", extra={"seconds": SILENT_CHECKS, "stack": stack_of(self._thread)})
        return CHECK_EVERY_S


def stack_of(thread: int) -> str:
    """The frames of the thread in one line, the innermost first; "" if the thread has ended."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - documented so; the only way to another thread's stack
    frames: list[str] = []
    while frame is not None and len(frames) < FRAMES_MAX:
        code = frame.f_code
        frames.append(f"{code.co_filename.rpartition('/')[2]}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return one_line(" < ".join(frames), STACK_MAX_CHARS)
