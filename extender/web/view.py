"""What the pages show: types, and the one that the answering application is about."""

from collections.abc import Mapping
from typing import Protocol

from flask import current_app

from extender.config.settings import Settings
from extender.feed.status import Status
from extender.policy.orders import Orders
from extender.verbs.counts import Lately
from extender.verbs.source import Source
from extender.why.journal import Journal


class View(Source, Protocol):
    """A Source, and what is said of it. settings: what the answers follow from. calls: kube-scheduler's of late.
    orders: what operators have ordered. journal: what is remembered."""

    @property
    def settings(self) -> Settings: ...
    @property
    def calls(self) -> Lately: ...
    @property
    def journal(self) -> Journal: ...

    @property
    def orders(self) -> Orders: ...
    @property
    def connected(self) -> bool:
        """Whether what is shown follows the process that answers kube-scheduler at this moment."""
        ...

    def monotonic(self) -> float: ...
    def status(self) -> Status | None:
        """The newest known, None before the first."""
        ...

    def beats(self) -> Mapping[str, float]:
        """By node: when its kubelet was last known to live, monotonic seconds."""
        ...

    def why_not(self) -> str:
        """Why kube-scheduler gets no verdicts, or nobody knows whether it does; "" if it gets them."""
        ...

    def unhealthy(self) -> list[str]:
        """Names of the threads of this process that have died or are stuck."""
        ...


def view() -> View:
    """The one that create_app put into the application which answers now."""
    found: View = current_app.extensions["readygate"]
    return found
