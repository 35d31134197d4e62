"""R29: kept connections that are used again after every time there is, around each limit of ours and of others."""

import heapq
import itertools
import time
from collections.abc import Sequence

from tools.soak import stage
from tools.soak.rows import Progress, Trial

MINUTES = 5.0
POSTS = 10_000  # in that time
# Ours: 5 s for a header, 10 s for a body or a reader, 120 s idle; kube-scheduler closes after 90 s idle.
SPACINGS_S = (
    *(0.1, 0.2, 0.5, 0.9, 1.0, 1.1, 1.9, 2.0, 2.1, 4.9, 4.99, 5.0, 5.01, 5.1, 9.9, 10.0, 10.1, 14.9, 15.0, 15.1),
    *(20.0, 29.9, 30.0, 30.1, 59.9, 60.0, 60.1, 74.9, 75.0, 75.1, 85.0, 89.0, 89.9, 90.0, 95.0, 119.9, 120.1, 130.0),
)


def hold(trial: Trial) -> None:
    spacings = that_fit(trial.seconds)
    with stage.extender(trial.folder, nodes=100) as (extender, _, names):
        # The short ones make the number, the long ones the edges.
        callers = [(spacing, stage.Caller(extender.port, names)) for spacing in spacings for _ in range(3)]
        order = itertools.count()
        began = time.monotonic()
        due = [(began + spacing / 2, next(order), spacing, caller) for spacing, caller in callers]
        heapq.heapify(due)
        progress = Progress(trial.say)
        posts = 0
        while due:
            at, _, spacing, caller = heapq.heappop(due)
            time.sleep(max(0.0, at - time.monotonic()))
            caller.ask()
            posts += 1
            progress(f"{posts} POSTs, {sum(caller.calls.failed for _, caller in callers)} lost")
            if time.monotonic() + spacing < began + trial.seconds:
                heapq.heappush(due, (time.monotonic() + spacing, next(order), spacing, caller))
        lost = {spacing: caller.calls.failures for spacing, caller in callers if caller.calls.failed}
        for _, caller in callers:
            caller.close()
        judge(trial, posts, spacings, {spacing for spacing, caller in callers if len(caller.calls.seconds) > 1})
        trial.at_most(0, "POSTs lost", sum(caller.calls.failed for _, caller in callers), "")
        trial.at_most(0, "tracebacks", stage.tracebacks(extender), "")
        if lost:
            trial.say(f"lost after: {lost}")


def that_fit(seconds: float) -> list[float]:
    """Spacings after which a connection can be used again: the first use is after half of one, the second after one
    more, with a tenth to spare."""
    return [spacing for spacing in SPACINGS_S if spacing * 1.65 < seconds]


def judge(trial: Trial, posts: int, spacings: Sequence[float], used_again: set[float]) -> None:
    """Whether as much was tried as the row is about. used_again: the spacings after which a connection was."""
    trial.played(POSTS, MINUTES, "POSTs", posts, "")
    trial.at_least(len(spacings), "spacings after which one was used again", len(used_again), "")
    trial.tell("the longest", max(used_again, default=0.0), "s")
