"""What an answer to kube-scheduler is made of, whoever gives it. Types only."""

from enum import Enum
from typing import Protocol

from extender.policy.exempt import Rules
from extender.policy.pods import Classes
from extender.policy.snapshot import Board
from extender.verbs.counts import Counts
from extender.why.attempts import Attempts


class Sync(Enum):
    """Whether verdicts may be given to kube-scheduler; the value says why not, for people."""

    OK = ""
    NOT_SYNCED = "readygate: cache not synced: nodes and health pods have not been read from the API server yet"
    STALE = "readygate: cache stale: nothing heard from the API server for longer than the limit"


class Source(Protocol):
    """board: what is decided. exemptions: pods that are refused no node. classes: for which pods each gate speaks, in
    the order of the configuration. counts: of the thread that answers.

    attempts: where that thread appends what it was asked, None if nobody remembers it.
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
        """Called for every request."""
        ...
