"""Times as the API and HTTP write them: text <-> seconds since the epoch. Pure."""

import math
from datetime import UTC, datetime
from functools import lru_cache

import msgspec


def parse_time(text: str | None) -> float | None:
    """RFC 3339 -> seconds since the epoch. Raises msgspec.ValidationError on anything else."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError as e:
        raise msgspec.ValidationError(f"not an RFC 3339 time: {text[:40]!r}") from e


def parse_http_date(text: str | None) -> float | None:
    """A header `Date` -> seconds since the epoch, whole ones; None for an invalid one."""
    from email.utils import parsedate_to_datetime  # an agent that only runs checks does not need it

    try:
        return None if text is None else parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def format_time(time_s: float) -> str:
    """As metav1.Time: whole seconds, UTC; fractions are cut off, before 1970, too."""
    return _second(math.floor(time_s))


@lru_cache(maxsize=1024)  # an object repeats the same second, and so do others
def _second(time_s: int) -> str:
    return _utc(time_s).isoformat(timespec="seconds") + "Z"


def format_micro_time(time_s: float) -> str:
    """As metav1.MicroTime, for Leases."""
    return _utc(time_s).isoformat(timespec="microseconds") + "Z"


def _utc(time_s: float) -> datetime:
    """Without its zone. strftime writes years before 1000 with fewer than four digits."""
    return datetime.fromtimestamp(time_s, UTC).replace(tzinfo=None)
