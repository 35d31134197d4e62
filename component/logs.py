"""One line a record: UTC time, level, logger, constant message, then the facts of `extra` as key="value", escaped.
A traceback follows its line, indented: no text in it passes for a record. Nobody waits for a line; lost ones count."""

import json
import logging
import os
import select
import sys
import threading
from datetime import UTC, datetime

from component.text import one_line

LIMIT = 4096  # characters of a message or value; libraries may quote a request in theirs
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
log = logging.getLogger(__name__)


class LineFormatter(logging.Formatter):
    """A value can hold quotes, newlines and any rune of a name or message: it stays within its line and its quotes."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        words = [when, record.levelname, record.name, one_line(record.getMessage(), LIMIT)]
        facts = {key: value for key, value in vars(record).items() if key not in _OWN}
        words += [f"{k}={json.dumps(v if isinstance(v, int | float) else str(v)[:LIMIT])}" for k, v in facts.items()]
        trace = self.formatException(record.exc_info).splitlines() if record.exc_info else []
        return "\n".join([" ".join(words), *("  " + "".join(c if c.isprintable() else " " for c in x) for x in trace)])


class LossyStream:
    """A stream to a file descriptor that never waits. Text without room is lost; the next text says how many were."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._lost, self._torn = descriptor, 0, ""
        self._room = select.poll()
        self._room.register(descriptor, select.POLLOUT)

    def write(self, text: str) -> None:
        """text: begins with its time. In pieces that a pipe which has room at all takes without waiting."""
        if self._lost:
            told = f"WARNING {__name__} lines lost, the log is not read lines={self._lost}"
            text = f"{self._torn}{text[:24]} {told}\n{text}"
        data, sent = text.encode(errors="backslashreplace"), 0
        try:
            while sent < len(data) and self._room.poll(0):
                sent += os.write(self._descriptor, data[sent : sent + select.PIPE_BUF])
        except OSError:  # nobody will ever read it, or its disk is full
            pass
        self._lost, self._torn = (0, "") if sent == len(data) else (self._lost + 1, "\n" if sent else self._torn)

    def flush(self) -> None:
        """Nothing is buffered."""


def set_up(level: str) -> None:
    """All loggers to standard error, also warnings and threads that die. level: a name of the standard library."""
    handler = logging.StreamHandler(LossyStream(sys.__stderr__.fileno())) if sys.__stderr__ else logging.NullHandler()
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # readygate's clients log outages themselves
    logging.captureWarnings(capture=True)
    threading.excepthook = _log_thread_failure


def _log_thread_failure(failure: threading.ExceptHookArgs) -> None:
    name, error = failure.thread.name if failure.thread else "?", failure.exc_value or failure.exc_type()
    log.error("a thread died", extra={"thread_name": name}, exc_info=(failure.exc_type, error, failure.exc_traceback))
