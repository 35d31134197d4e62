"""Pure: what clients may ask and send. Anything else is refused in one line that repeats nothing of the request."""

import re
from collections.abc import Iterable, Mapping, Sequence

# A quarter of the limit at kube-scheduler's own port: enough for tests by hand, and this process is small.
BODY_LIMIT_BYTES = 2 * 2**20
# A larger body is read and answered alone, because the answer takes ten times its size. Others wait, then get 503.
LARGE_BODY_BYTES = 2**16
LARGE_BODY_WAIT_S = 1.0
# From the end of its head. Without it a dripping client would keep the turn for a minute.
LARGE_BODY_LIMIT_S = 5.0

LIMIT_MAX = 1000
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z")  # of a node or a pod
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")  # of a namespace or a gate
NUMBER = re.compile(r"[1-9][0-9]{0,14}\Z")
KINDS = ("closed", "opened", "held", "released", "cap", "storm", "stormEnded", "order")


class BadRequestError(Exception):
    """The request is refused. One line with cause and remedy; holds nothing of the request."""


def query(given: Mapping[str, Sequence[str]], allowed: Iterable[str]) -> dict[str, str]:
    """Returns the parameters. given: all values by parameter; each may be given once. Raises BadRequestError."""
    names = tuple(allowed)
    if given.keys() - set(names):
        allowed_text = f"allowed: {', '.join(names)}" if names else "none is allowed here"
        raise BadRequestError(f"a parameter is not known; {allowed_text}")
    for name, values in given.items():
        if len(values) != 1:
            raise BadRequestError(f"{name}: is given {len(values)} times; give it once")
    return {name: values[0] for name, values in given.items()}


def limit(asked: Mapping[str, str], default: int | None) -> int | None:
    """Returns the size of a page, None for all. Raises BadRequestError."""
    text = asked.get("limit")
    if text is None:
        return default
    if not NUMBER.match(text) or int(text) > LIMIT_MAX:
        raise BadRequestError(f"limit: is no number from 1 to {LIMIT_MAX}")
    return int(text)


def after_name(asked: Mapping[str, str]) -> str:
    """Returns the name that the last page ended with, "" for the first page. Raises BadRequestError."""
    return _matching(asked, "continue", NAME, "was not in an answer; leave it out to start from the beginning")


def after_number(asked: Mapping[str, str]) -> int | None:
    """As after_name(), None for the first page."""
    text = _matching(asked, "continue", NUMBER, "was not in an answer; leave it out to start from the beginning")
    return int(text) if text else None


def node(asked: Mapping[str, str]) -> str:
    return _matching(asked, "node", NAME, "is no name of a node")


def gate(asked: Mapping[str, str]) -> str:
    return _matching(asked, "gate", LABEL, "is no name of a gate")


def kind(asked: Mapping[str, str]) -> str:
    text = asked.get("kind", "")
    if "kind" in asked and text not in KINDS:
        raise BadRequestError(f"kind: is none of {', '.join(KINDS)}")
    return text


def named(text: str, pattern: re.Pattern[str], what: str) -> str:
    """Checks a name in the path. Raises BadRequestError."""
    if not pattern.match(text):
        raise BadRequestError(f"the path names no {what}: small letters, digits, - and . are allowed")
    return text


def _matching(asked: Mapping[str, str], name: str, pattern: re.Pattern[str], otherwise: str) -> str:
    text = asked.get(name)
    if text is None:
        return ""
    if not pattern.match(text):
        raise BadRequestError(f"{name}: {otherwise}")
    return text
