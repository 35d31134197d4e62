"""Logs where the serving thread is when it sends no heartbeat: gunicorn kills a worker that hangs without a word.

A thread of its own looks once a second. It needs the GIL, which Python takes from a thread that spins and which a call
that waits gives back; code in C that holds it for seconds is not logged.
"""

import logging
import sys
import threading

from component.loop import Loop
from component.text import one_line

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
SILENT_LOOKS = 5  # without a heartbeat, of which there is one a second; gunicorn kills after ten seconds
FRAMES_MAX = 12
STACK_MAX_CHARS = 800


class Watchdog:
    """As a service. Made by the thread that it watches.

    Looks are counted, and not seconds: they stand still while the whole process is frozen.
    """

    name = "watchdog"

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._beats = self._last_beats = self._silent_looks = 0
        self._loop = Loop("watchdog", self.look, stuck_after_s=60.0, first_pause_s=LOOK_EVERY_S)
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def beat(self) -> None:
        """The heartbeat, once a second."""
        self._beats += 1

    def look(self) -> float:
        """Logs once for each time that the heartbeats stop. Seconds until the next look."""
        if self._beats != self._last_beats:
            self._last_beats, self._silent_looks = self._beats, 0
        else:
            self._silent_looks += 1
            if self._silent_looks == SILENT_LOOKS:
                log.error("the serving thread hangs", extra={"seconds": SILENT_LOOKS, "stack": stack_of(self._thread)})
        return LOOK_EVERY_S


def stack_of(thread: int) -> str:
    """Its frames in one line, the innermost first. "" if the thread has ended."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - documented so; the only way to another thread's stack
    frames: list[str] = []
    while frame is not None and len(frames) < FRAMES_MAX:
        code = frame.f_code
        frames.append(f"{code.co_filename.rpartition('/')[2]}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return one_line(" < ".join(frames), STACK_MAX_CHARS)
