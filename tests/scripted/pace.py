"""How fast kube-scheduler is answered while something else goes on: a ratio within one run.

The processor is the same for all, and others use it too. So of the rounds the best one counts: a slow one may be the
machine's own, but what holds a call up does so in each.
"""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from tests.scripted.extender_process import ExtenderProcess, checked

ROUNDS = 6


def calls(extender: ExtenderProcess, names: Sequence[str], seconds: float = 1.5) -> list[float]:
    """Durations, sorted: one kept connection, a second for an answer, a pause between two. None may fail."""
    question = json.dumps({"Pod": {}, "Nodes": None, "NodeNames": names}).encode()
    found, end = [], time.monotonic() + seconds
    connection = extender.connection(timeout=1)
    while time.monotonic() < end:
        began = time.monotonic()
        connection.request("POST", "/filter", question)
        assert checked(connection.getresponse().read(), names).Error == ""
        found.append(time.monotonic() - began)
        time.sleep(0.003)
    connection.close()
    return sorted(found)


def best_p99_ratio(
    asked: Callable[[], list[float]], beside: Callable[[], AbstractContextManager[object]], enough: float
) -> float:
    """Of the calls beside it to those without it, in the best round; no more rounds once one is not above `enough`."""
    ratios: list[float] = []
    while len(ratios) < ROUNDS and min(ratios, default=enough + 1) > enough:
        quiet = _p99(asked())
        with beside():
            ratios.append(_p99(asked()) / quiet)
    return min(ratios)


def _p99(durations: Sequence[float]) -> float:
    return durations[int(0.99 * (len(durations) - 1))]
