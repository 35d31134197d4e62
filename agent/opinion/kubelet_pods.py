"""The health pods as the kubelet has them, asked while the API server tells nothing."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from agent.cri.base import Trouble
from agent.opinion.pods import HealthPodTable
from agent.opinion.selection import Chosen, HealthPods, joined
from agent.podsapi.base import NOT_THERE, PodsApi, PodsApiError
from agent.wire.pod import PodObject
from component.loop import Loop
from kube.selector import parse as parse_selector

log = logging.getLogger(__name__)

ASK_S = 5.0
DEADLINE_S = 5.0
STUCK_AFTER_S = 60.0
KEPT_S = 20.0  # an answer: while the kubelet does not answer either, nobody tells anything


class Source(Protocol):
    """The part of agent.opinion.pods.HealthPodSource that is used."""

    @property
    def synced(self) -> bool: ...
    @property
    def news(self) -> bool: ...
    def pods(self) -> Sequence[Chosen]: ...


class KubeletPods:
    """A Service, and the source of the judge: the pods of `source` while it has news, else those that the kubelet
    tells; where it tells none either, whichever were told last. `connect` raises PodsApiError; None: it is never asked.
    """

    name = "the kubelet's pods"

    def __init__(
        self,
        source: Source,
        node_name: str,
        chosen: Sequence[HealthPods],
        on_change: Callable[[], None],
        connect: Callable[[], PodsApi] | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._connect = connect
        self._monotonic = monotonic
        self._on_change = on_change
        self._node_name = node_name
        self._tables = tuple(HealthPodTable(one, node_name, lambda: None) for one in dict.fromkeys(chosen))
        self._api: PodsApi | None = None
        self._told_at: float | None = None  # None: not since the API server told last
        self._trouble: Trouble | None = None
        self._loop = Loop("kubelet-pods", self.turn, stuck_after_s=STUCK_AFTER_S, unblock=self._close)
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def follow(self, chosen: Sequence[HealthPods]) -> None:
        """From now on these: as HealthPodSource.follow, of what the kubelet tells."""
        before = {table.chosen: table for table in self._tables}
        after = {}
        for one in chosen:
            after[one] = before.get(one) or HealthPodTable(one, self._node_name, lambda: None)
            if one not in before:
                after[one].begin_with(before.values())
        self._tables = tuple(after.values())

    @property
    def synced(self) -> bool:
        """Whether somebody has told the pods."""
        return self._source.synced or self._told_at is not None

    @property
    def news(self) -> bool:
        """Whether somebody has told of late what there is to tell."""
        return self._source.news or self.by_kubelet

    @property
    def by_kubelet(self) -> bool:
        """Whether that is the kubelet alone."""
        told_at = self._told_at
        return told_at is not None and not self._source.news and self._monotonic() - told_at <= KEPT_S

    def pods(self) -> list[Chosen]:
        if self._told_at is None or self._source.news:
            return list(self._source.pods())
        return joined((table.chosen, table.pods()) for table in self._tables)

    def turn(self) -> float:
        """One question, if it is needed; returns the seconds until the next."""
        if self._connect is None or self._source.news:
            self._told_at = None
            self._close()
            return ASK_S
        try:
            if self._api is None:
                self._api = self._connect()
            self._take(self._api.list_pods(DEADLINE_S))
        except PodsApiError as e:
            self._failed(e)
        return ASK_S

    def _take(self, items: Sequence[PodObject]) -> None:
        for table in self._tables:
            selector = parse_selector(table.chosen.label_selector)
            table.replace([item for item in items if selector.matches(item.metadata.labels or {})])
        if self._told_at is None:
            log.warning("the API server tells nothing: the health pods are those that the kubelet tells")
        self._trouble = None
        self._told_at = self._monotonic()
        self._on_change()

    def _failed(self, error: PodsApiError) -> None:
        if error.trouble is not self._trouble and error.trouble not in NOT_THERE and not self._loop.stopping:
            log.warning("the kubelet does not tell its pods", extra={"error": str(error)})
        self._trouble = error.trouble

    def _close(self) -> None:
        api, self._api = self._api, None
        if api is not None:
            api.close()
