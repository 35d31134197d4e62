"""One line per record: time, level, logger, constant message, then the facts of `extra` as key="value", escaped."""

import json
import logging
import sys
from datetime import UTC, datetime

from component.text import one_line

MESSAGE_LIMIT = 1024  # characters; ours are constant, gunicorn's may quote a request
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LineFormatter(logging.Formatter):
    """A value can hold quotes, newlines and any rune of a name or message: it stays within its line and its quotes."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        words = [when, record.levelname, record.name, one_line(record.getMessage(), MESSAGE_LIMIT)]
        words += [f"{key}={_value(value)}" for key, value in vars(record).items() if key not in _OWN]
        line = " ".join(words)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _value(value: object) -> str:
    return json.dumps(value if isinstance(value, int | float | bool) else str(value))


def set_up(level: str) -> None:
    """All loggers to standard error. level: a name of the standard library, any case."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # kube tells of every trouble once, in its own words
