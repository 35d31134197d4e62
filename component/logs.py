"""One line a record: UTC time, level, logger, constant message, then the facts of `extra` as key="value", escaped.
A traceback follows its line, indented, so that no text in it can pass for a record."""

import json
import logging
import sys
import threading
from datetime import UTC, datetime

from component.text import one_line

LIMIT = 4096  # characters of a message or value; our messages are constant, those of libraries may quote a request
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
log = logging.getLogger(__name__)


class LineFormatter(logging.Formatter):
    """A value can hold quotes, newlines and any rune of a name or message: it stays within its line and its quotes."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        words = [when, record.levelname, record.name, one_line(record.getMessage(), LIMIT)]
        facts = {key: value for key, value in vars(record).items() if key not in _OWN}
        plain = {key: v if isinstance(v, int | float) else str(v)[:LIMIT] for key, v in facts.items()}
        words += [f"{key}={json.dumps(value)}" for key, value in plain.items()]
        trace = self.formatException(record.exc_info).splitlines() if record.exc_info else []
        printable = ("".join(c if c.isprintable() else " " for c in line) for line in trace)
        return "\n".join([" ".join(words), *("  " + line for line in printable)])


def set_up(level: str) -> None:
    """All loggers to standard error, also warnings and threads that die. level: a name of the standard library."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # our clients log outages themselves
    logging.captureWarnings(capture=True)
    threading.excepthook = _log_thread_failure


def _log_thread_failure(failure: threading.ExceptHookArgs) -> None:
    name, error = failure.thread.name if failure.thread else "?", failure.exc_value or failure.exc_type()
    log.error("a thread died", extra={"thread_name": name}, exc_info=(failure.exc_type, error, failure.exc_traceback))
