"""Reads the kernel's log and writes an Event of the Node for each time that the machine was out of memory.

For mode `kubelet` only: next to a kubelet the Events would be written twice. What the log held before the start is left
out: its Events would have the time of the start, and come again with each.
"""

import contextlib
import logging
import os
import select

from agent.kernel import kmsg
from agent.kubelet.events.event import Record
from agent.kubelet.node.oom import Kills, event_of
from component.loop import Loop

log = logging.getLogger(__name__)

WAIT_S = 5.0  # the thread turns as often without a new line
OPEN_AGAIN_S = 60.0
STUCK_AFTER_S = 15.0
MOST_READS = 10_000  # in one turn


class OomWatcher:
    """A Service. `record` takes an Event and never waits."""

    name = "oom watcher"

    def __init__(self, node_name: str, record: Record, path: str = kmsg.PATH) -> None:
        self._node_name, self._record, self._path = node_name, record, path
        self._log: int | None = None
        self._kills = Kills()
        self._reported = False  # that the log cannot be read
        self._end = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._loop = Loop(
            "oom",
            self.turn,
            stuck_after_s=STUCK_AFTER_S,
            unblock=lambda: os.eventfd_write(self._end, 1),
            at_end=self._close,
        )
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def turn(self) -> float:
        """Waits for a line and takes all that are there; returns the seconds until the next turn."""
        if self._log is None and not self._open():
            return OPEN_AGAIN_S
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        poll.register(self._log if self._log is not None else self._end, select.POLLIN)
        poll.poll(WAIT_S * 1000)
        try:
            for _ in range(MOST_READS):
                if not self._take_one():
                    break
        except OSError as e:
            self._report(e)
            self._close()
            return OPEN_AGAIN_S
        return 0.0

    def _take_one(self) -> bool:
        """One read of the log. False where nothing is left. Raises OSError."""
        if self._log is None:
            return False
        try:
            block = os.read(self._log, kmsg.RECORD_BYTES)
        except BlockingIOError:
            return False
        except BrokenPipeError:  # overwritten before it was read; the next read gives the oldest that there is
            return True
        for record in kmsg.records_in(block):
            kill = self._kills.take(record.text)
            event = None if kill is None else event_of(kill, self._node_name)
            if event is not None:
                log.warning("system out of memory", extra={"text": event.message})
                self._record(event)
        return bool(block)

    def _open(self) -> bool:
        try:
            self._log = kmsg.opened(self._path)
        except OSError as e:
            self._report(e)
            return False
        self._reported, self._kills = False, Kills()
        with contextlib.suppress(OSError):  # a pipe has no end
            os.lseek(self._log, 0, os.SEEK_END)
        return True

    def _report(self, error: OSError) -> None:
        if not self._reported:
            facts = {"path": self._path, "error": error.strerror, "needs": kmsg.needs(error)}
            log.warning("no SystemOOM Events: the kernel log cannot be read", extra=facts)
        self._reported = True

    def _close(self) -> None:
        if self._log is not None:
            os.close(self._log)
            self._log = None
