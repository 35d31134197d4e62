"""The interface of what is shown, and the object that the current application shows."""

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
    """A Source with its state. settings: behind the answers. calls: kube-scheduler's in the last ten minutes. orders:
    of operators. journal: the recorded history."""

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
        """Returns whether the view follows the process that answers kube-scheduler at this moment."""
        ...

    def monotonic(self) -> float: ...
    def status(self) -> Status | None:
        """Returns the newest known status, None before the first."""
        ...

    def beats(self) -> Mapping[str, float]:
        """By node: when its kubelet was last known to live, in monotonic seconds."""
        ...

    def why_not(self) -> str:
        """Returns why kube-scheduler gets no verdicts, or why that is unknown; "" if it gets them."""
        ...

    def unhealthy(self) -> list[str]:
        """Returns the names of threads of this process that have died or are stuck."""
        ...


def view() -> View:
    """Returns the view that create_app put into the current application."""
    found: View = current_app.extensions["readygate"]
    return found
