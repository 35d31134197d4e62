"""Deletes all objects of a collection from a real API server, page after page.

As a whole that fails from a few thousand objects on: the API server ends each request after 60 s, with 504 or a reset.
"""

import time
import urllib.parse
from collections.abc import Callable

from tools.testbed.shared.api import Api, ApiError

PAGE = 250  # objects, in the first requests
PAGE_MIN = 10  # after failures
COUNTED = 500  # objects of a page while those that are left are counted
REQUEST_S = 65.0  # longer than the API server's own limit, so that its answer arrives
FAILURES_MAX = 5  # one after another
PAUSE_S = (
    0.5  # after a failure, doubled after each that follows; and before objects that are still ending are looked at
)
RETRIABLE = frozenset({0, 410, 429, 500, 502, 503, 504})  # statuses; 0: no answer, 410: the next page has expired


class LeftoverError(Exception):
    """Some objects could not be deleted."""


def delete_all(
    api: Api,
    path: str,
    *,
    selector: str = "",
    limit_s: float = 600.0,
    pause: Callable[[float], object] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Deletes the objects at `path`, or those that a label selector matches, without grace. Returns when none is left.

    Failures that may pass are retried with smaller pages. Raises ApiError for any other, and LeftoverError, with the
    number of objects that are left, after FAILURES_MAX retries and after `limit_s`.
    """
    until = monotonic() + limit_s
    matching = {"labelSelector": selector} if selector else {}
    page, following, failures, cause = PAGE, "", 0, "they do not end"
    while True:
        query = {**matching, "gracePeriodSeconds": 0, "limit": page, "continue": following}
        try:
            answer = api.request("DELETE", _url(path, query), timeout_s=REQUEST_S)
            following = answer.get("metadata", {}).get("continue", "")
            if not following and not api.items(_url(path, {**matching, "limit": 1})):
                return
            failures, wait_s = 0, 0.0 if following else PAUSE_S
        except ApiError as e:
            if e.status not in RETRIABLE:
                raise
            failures, page, following, cause = failures + 1, max(PAGE_MIN, page // 2), "", str(e)
            wait_s = PAUSE_S * 2 ** (failures - 1)
        if failures > FAILURES_MAX or monotonic() + wait_s > until:
            raise LeftoverError(f"{_count(api, path, matching)} objects of {path} are left: {cause}")
        pause(wait_s)


def _count(api: Api, path: str, matching: dict[str, object]) -> str:
    count, following = 0, ""
    while True:
        try:
            answer = api.get(_url(path, {**matching, "limit": COUNTED, "continue": following}))
        except ApiError:
            return f"{count} or more"
        count += len(answer["items"])
        following = answer["metadata"].get("continue", "")
        if not following:
            return str(count)


def _url(path: str, query: dict[str, object]) -> str:
    return f"{path}?{urllib.parse.urlencode({key: value for key, value in query.items() if value != ''})}"
