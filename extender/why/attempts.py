"""The queue of answered calls, from the verbs to the recorder: one append in the request path, whatever was asked.

The serving thread appends, and the recorder takes. There is no lock: appending to a deque and taking from it are one
step each, and each number has one writer. Names are not copied: an answer never changes after it was given.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Sequence

import msgspec

from extender.policy.snapshot import Snapshot

ATTEMPT_NAMES = 64  # an attempt counts as so many names of memory
WAITING_NAMES_MAX = 4 * (65_536 + ATTEMPT_NAMES)  # in the queue: 15 MB of texts
TEXTS_LIMIT = 63 + 253 + 64  # characters of namespace, name and uid; the limit of the API


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """One filter call for a pod. monotonic: when it was answered.

    asked: how many names. survivors: how many of them passed. refused: the others. names: all asked names, if a gate in
    shadow needs them. mask: of the gates that apply to the pod. snapshot: the one that was used. unanswered: why there
    was no verdict, "" if there was one. exempt: why nothing was refused, "" if the pod is not exempt. nominated: the
    only name is the pod's nominated node. unknown: a name was refused because no snapshot has it.
    """

    namespace: str
    name: str
    uid: str
    monotonic: float
    asked: int = 0
    survivors: int = 0
    refused: Collection[str] = ()
    names: Sequence[str] = ()
    mask: int = 1
    snapshot: Snapshot | None = None
    unanswered: str = ""
    exempt: str = ""
    nominated: bool = False
    unknown: bool = False


class Attempts:
    """A bounded queue. Attempts beyond the bound are dropped and counted: then the last attempt of some pod is not
    recorded.

    keep_names: set by the recorder while a gate in shadow closes a node. dropped: because the queue was full. unfit: of
    pods that no API server would accept.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self.keep_names = False
        self.dropped = 0
        self.unfit = 0
        self._waiting: deque[Attempt] = deque()
        self._added = 0  # names, including a share for the attempts; written by the serving thread
        self._taken = 0  # written by the recorder

    def add(self, attempt: Attempt) -> None:
        """Called by the serving thread only."""
        if len(attempt.namespace) + len(attempt.name) + len(attempt.uid) > TEXTS_LIMIT:
            self.unfit += 1
            return
        added = self._added + ATTEMPT_NAMES + len(attempt.refused) + len(attempt.names)
        if added - self._taken > WAITING_NAMES_MAX:
            self.dropped += 1
            return
        self._added = added
        self._waiting.append(attempt)

    def take(self, most: int) -> list[Attempt]:
        """Returns the oldest attempts. Called by the recorder."""
        waiting = self._waiting
        taken = [waiting.popleft() for _ in range(min(most, len(waiting)))]
        self._taken += sum(ATTEMPT_NAMES + len(attempt.refused) + len(attempt.names) for attempt in taken)
        return taken
