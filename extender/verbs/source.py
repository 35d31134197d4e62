"""Types of what an answer to kube-scheduler is made of."""

from enum import Enum
from typing import Protocol

from extender.policy.exempt import Rules
from extender.policy.pods import Classes
from extender.policy.snapshot import Board
from extender.verbs.counts import Counts
from extender.why.attempts import Attempts


class Sync(Enum):
    """Whether readygate may give verdicts; the value is the cause if it may not."""

    OK = ""
    NOT_SYNCED = "readygate: cache not synced: nodes and health pods have not been read from the API server yet"
    STALE = "readygate: cache stale: no answer from the API server for longer than the limit"


class Source(Protocol):
    """What the verbs read.

    board: the current decisions. exemptions: which pods are exempt. classes: to which pods each gate applies, in the
    order of the configuration. counts: of the thread that answers. attempts: where that thread appends requests and
    answers, None if nothing records them.
    """

    @property
    def board(self) -> Board: ...
    @property
    def exemptions(self) -> Rules: ...
    @property
    def classes(self) -> Classes: ...
    @property
    def counts(self) -> Counts: ...
    @property
    def attempts(self) -> Attempts | None: ...
    def sync(self) -> Sync:
        """Returns whether verdicts may be given. Called for every request."""
        ...
