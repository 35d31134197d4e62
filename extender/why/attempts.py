"""What the verbs say of each call, for the recorder: one step in the request path, whatever was asked.

The thread that answers appends, the recorder's takes. No lock: appending to a deque and taking from it are one step
each, and each number has one writer. Names are not copied: nobody writes into an answer after it was given.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Sequence

import msgspec

from extender.policy.snapshot import Snapshot

ATTEMPT_NAMES = 64  # an attempt takes the memory of so many names
WAITING_NAMES_MAX = 4 * (65_536 + ATTEMPT_NAMES)  # that the recorder has not taken: 15 MB of texts
TEXTS_LIMIT = 63 + 253 + 64  # characters of namespace, name and uid; the API takes no longer ones


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """One filter call for a pod. monotonic: when it was answered.

    asked: how many names. survivors: how many of them passed. refused: the others. names: all asked, if a
    gate in shadow is to be looked at. mask: of the gates that speak for the pod. snapshot: what the answer was made of.
    unanswered: why it was not, "" if it was. exempt: why nothing was refused, "" if the pod is not exempt.
    nominated: the one name asked is that of the pod's nominated node. unknown: a name was refused because no snapshot
    holds it.
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
    """Bounded. What finds no room is dropped and counted: then what is remembered of some pod is not its last attempt.

    keep_names: set by the recorder while a gate in shadow closes a node. dropped: for want of room. unfit: of pods that
    no API server would have.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self.keep_names = False
        self.dropped = 0
        self.unfit = 0
        self._waiting: deque[Attempt] = deque()
        self._added = 0  # names, with those of the attempts themselves; written by the thread that answers
        self._taken = 0  # written by the recorder

    def add(self, attempt: Attempt) -> None:
        """Called by the one thread that answers."""
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
        """The oldest. Called by the recorder."""
        waiting = self._waiting
        taken = [waiting.popleft() for _ in range(min(most, len(waiting)))]
        self._taken += sum(ATTEMPT_NAMES + len(attempt.refused) + len(attempt.names) for attempt in taken)
        return taken
