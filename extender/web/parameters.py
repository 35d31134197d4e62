"""Pure: what a request asks for, strictly. What it may not say is refused in one line that repeats nothing of it."""

import re
from collections.abc import Iterable, Mapping, Sequence

# A quarter of what kube-scheduler may send at its own port: enough for a try by hand, and this process is small.
BODY_LIMIT_BYTES = 2 * 2**20
# A larger body is read and answered alone, because the answer takes ten times its size. Others wait, then get 503.
LARGE_BODY_BYTES = 2**16
LARGE_BODY_WAIT_S = 1.0
# From the end of its head. A client that sends a byte now and then would else keep the turn for a minute.
LARGE_BODY_LIMIT_S = 5.0

LIMIT_MAX = 1000
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z")  # of a node or a pod
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")  # of a namespace or a gate
NUMBER = re.compile(r"[1-9][0-9]{0,14}\Z")
KINDS = ("closed", "opened", "held", "released", "cap", "storm", "stormEnded", "order")


class BadRequestError(Exception):
    """Cause and remedy in one line. Holds nothing of the request."""


def query(given: Mapping[str, Sequence[str]], allowed: Iterable[str]) -> dict[str, str]:
    """given: all values by parameter. Each may be there once. Raises BadRequestError."""
    names = tuple(allowed)
    if given.keys() - set(names):
        allowed_text = f"allowed: {', '.join(names)}" if names else "none is allowed here"
        raise BadRequestError(f"a parameter is not known; {allowed_text}")
    for name, values in given.items():
        if len(values) != 1:
            raise BadRequestError(f"{name}: is given {len(values)} times; give it once")
    return {name: values[0] for name, values in given.items()}


def limit(asked: Mapping[str, str], default: int | None) -> int | None:
    """How many of one page, None for all. Raises BadRequestError."""
    text = asked.get("limit")
    if text is None:
        return default
    if not NUMBER.match(text) or int(text) > LIMIT_MAX:
        raise BadRequestError(f"limit: is no number from 1 to {LIMIT_MAX}")
    return int(text)


def after_name(asked: Mapping[str, str]) -> str:
    """The name that the last page ended with, "" for the first page. Raises BadRequestError."""
    return _matching(asked, "continue", NAME, "was not given by an answer; leave it out to begin anew")


def after_number(asked: Mapping[str, str]) -> int | None:
    """As after_name(), None for the first page."""
    text = _matching(asked, "continue", NUMBER, "was not given by an answer; leave it out to begin anew")
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
    """A name in the path. Raises BadRequestError."""
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
