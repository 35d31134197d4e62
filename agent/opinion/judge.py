"""The loop that brings the opinion together: pods and probe results in, findings out, a condition to each publisher.

It is woken by whatever has changed, and turns once a second besides, as time alone makes disagreements. It waits for no
network and no probe.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agent.checks.health import NodeHealth
from agent.checks.state import CheckStatus
from agent.kubelet.status.conditions import is_terminal
from agent.opinion import agreement
from agent.opinion.agreement import Stance, Words
from agent.opinion.checks_per_pod import ChecksPerPod
from agent.opinion.readiness import Opinion, Word, opinion_of, told, was_said
from agent.opinion.selection import Chosen, HealthPods, budget_s, can_probe, counted, limited, probed
from agent.opinion.verdict import (
    API_SERVER_AWAY,
    KUBELET_SAYS_UNREADY,
    PODS_UNKNOWN,
    PROBE_NOT_MADE,
    Finding,
    condition_of,
)
from agent.report.condition import Condition
from agent.wire.condition import (
    REASON_KUBELET_DISAGREES,
    REASON_KUBELET_SILENT,
    REASON_PLEG_UNHEALTHY,
    REASON_PROBES_FAILED,
    SPEAKER_NODE,
    speaker_of,
)
from agent.wire.containers import RuntimePod
from agent.wire.model import Pod, PodStatus, Result
from agent.wire.semantics import Semantics
from component.loop import Loop
from kube.contract import STATUS_TRUE

log = logging.getLogger(__name__)

TURN_S = 1.0
STUCK_AFTER_S = 15.0
# Of one entry. More are no health pods of one node: a selector that matches everything. Each costs a thread a probe and
# one to write.
MOST_PODS = 16
BY_PROBES = (REASON_PROBES_FAILED, REASON_KUBELET_DISAGREES)
BY_KUBELET = (REASON_KUBELET_SILENT, REASON_PLEG_UNHEALTHY)
SETTLE_S = 2.0  # beyond a probe budget: a pod whose probes have said nothing by then is spoken of without them


class Source(Protocol):
    """The part of agent.opinion.kubelet_pods.LocalPods that is used."""

    @property
    def synced(self) -> bool: ...
    @property
    def news(self) -> bool: ...
    @property
    def by_kubelet(self) -> bool: ...
    def pods(self) -> Sequence[Chosen]: ...


class Probers(Protocol):
    """The part of agent.kubelet.prober.manager.ProberManager that is used."""

    def add_pod(self, pod: Pod) -> bool: ...
    def cleanup_pods(self, desired: Collection[str]) -> None: ...


class Desk(Protocol):
    """The part of agent.opinion.condition_writers.Speakers that is used."""

    def say(self, pod: Pod, condition: Condition) -> None: ...
    def keep(self, uids: Collection[str]) -> None: ...


@dataclass(frozen=True, slots=True)
class Judged:
    """One health pod. `chosen_by`: the entries of node.healthPods that have chosen it. `since`: when it was first seen
    here, monotonic. `settled`: our probes have said something, or have had their time for it."""

    pod: Pod
    chosen_by: frozenset[HealthPods]
    since: float
    opinion: Opinion
    words: Words
    settled: bool
    findings: tuple[Finding, ...] = ()

    @property
    def speaks(self) -> bool:
        return speaker_of(self.pod.annotations) == SPEAKER_NODE


@dataclass(frozen=True, slots=True)
class Facts:
    """Where the judge looks. `result`: container id -> the stable result of our probe. `checks`: the states that the
    node's health is made of, `counting`: for which health pods each counts, which is known before a check is there.
    `runtime`: what the runtime knows of a pod, None where it is not asked, or the kubelet knows more. `node`: findings
    on the node. `kubelet_known`: whether it has been heard, or that it is silent is among them."""

    result: Callable[[str], Result | None]
    checks: Callable[[], Sequence[CheckStatus]]
    counting: Callable[[], ChecksPerPod]
    node: Callable[[], Sequence[Finding]] = tuple
    runtime: Callable[[Pod], RuntimePod | None] = lambda _pod: None
    kubelet_known: Callable[[], bool] = lambda: True


class Judge:
    """A Service. `desk` None: nothing is published."""

    name = "opinion"

    def __init__(
        self,
        source: Source,
        probers: Probers,
        facts: Facts,
        desk: Desk | None,
        *,
        semantics: Semantics,
        disagreement_s: float,
        with_exec: bool = False,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._probers = probers
        self._facts = facts
        self._desk = desk
        self._semantics = semantics
        self._disagreement_s = disagreement_s
        self._with_exec = with_exec
        self._wall = wall
        self._start_wall = wall()
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._judged: dict[str, Judged] = {}
        self._node_findings: tuple[Finding, ...] = ()
        self._said: frozenset[tuple[str, str]] = frozenset()
        self._words: dict[str, tuple[Word, Word]] = {}
        self._told_of_many = False
        self._loop = Loop("opinion", self.turn, stuck_after_s=STUCK_AFTER_S, monotonic=monotonic)
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy
        self.wake = self._loop.wake

    def judged(self) -> list[Judged]:
        with self._lock:
            return list(self._judged.values())

    def findings(self) -> list[Finding]:
        """On the node, then on its health pods."""
        with self._lock:
            return [*self._node_findings, *(f for one in self._judged.values() for f in one.findings)]

    def pod_status(self, uid: str) -> PodStatus | None:
        """For the probes: the status of a pod as it is seen here."""
        with self._lock:
            judged = self._judged.get(uid)
        return None if judged is None else judged.opinion.status

    def turn(self) -> float:
        """One look at everything; returns the seconds until the next."""
        # In this order: who names a check is known before it is there, who chooses pods before what counts for theirs,
        # and what a pod has been chosen by when the lists have been read.
        statuses, counting = self._facts.checks(), self._facts.counting()
        all_known = self._source.synced or not counting.parts
        chosen = self._chosen()
        monotonic, news = self._monotonic(), self._source.news
        judged = {one.pod.uid: self._judge(one, monotonic, news=news) for one in chosen}
        node = tuple(self._on_the_node(news=news))
        with self._lock:
            self._judged, self._node_findings = judged, node
        self._probers.cleanup_pods(judged.keys())
        for pod in (one.pod for one in chosen):
            if not is_terminal(pod.status.phase) and pod.deletion_timestamp is None:
                self._probers.add_pod(probed(pod, with_exec=self._with_exec))
        self._log()
        if self._desk is not None:
            healths = {uid: counting.health(statuses, one.chosen_by) for uid, one in judged.items()}
            self._publish(self._desk, list(judged.values()), node, healths, all_known=all_known)
        return TURN_S

    def _chosen(self) -> list[Chosen]:
        pods = self._source.pods()
        found = limited(pods, MOST_PODS)
        if len(pods) > len(found) and not self._told_of_many:
            self._told_of_many = True
            extra = {"pods": len(pods), "looked_at": len(found)}
            log.warning("more health pods than a node can have: narrow node.healthPods", extra=extra)
        return found

    def _judge(self, chosen: Chosen, monotonic: float, *, news: bool) -> Judged:
        pod = chosen.pod
        before = self._judged.get(pod.uid)
        since = monotonic if before is None else before.since
        opinion = opinion_of(
            pod,
            self._facts.runtime(pod),
            self._facts.result,
            semantics=self._semantics,
            with_exec=self._with_exec,
            wall=self._wall(),
            start_wall=self._start_wall,
        )
        theirs, _ = told(pod.status)
        stand_s = self._disagreement_s + budget_s(pod)
        words = agreement.heard(
            None if before is None else before.words,
            opinion.containers,
            theirs,
            monotonic,
            stand_s=stand_s,
            news=news,
            unready=opinion.unready,
            unknown=opinion.unknown,
            closed_before=self._closed_before(pod),
        )
        heard = opinion.containers is not Word.UNKNOWN or opinion.unknown <= self._not_made(pod).keys()
        settled = heard or monotonic - since >= budget_s(pod) + SETTLE_S
        judged = Judged(pod, chosen.by, since, opinion, words, settled or (before is not None and before.settled))
        stance = agreement.stance(words, monotonic, stand_s=stand_s, news=news)
        return replace(judged, findings=tuple(self._on(judged, stance)))

    def _closed_before(self, pod: Pod) -> frozenset[str] | None:
        """The containers that our probes may have closed it for before we were started; None: they had not."""
        if not was_said(pod.status, BY_PROBES):
            return None
        all_of_them = counted(pod)
        made = (
            c for c in all_of_them if not c.readiness_probe or can_probe(c.readiness_probe, with_exec=self._with_exec)
        )
        return frozenset(c.name for c in made) or frozenset(c.name for c in all_of_them)

    def _not_made(self, pod: Pod) -> dict[str, None]:
        """The containers whose probe we never make, in their order."""
        probes = {c.name: c.readiness_probe for c in counted(pod) if c.readiness_probe is not None}
        return {name: None for name, probe in probes.items() if not can_probe(probe, with_exec=self._with_exec)}

    def _on(self, judged: Judged, stance: Stance) -> list[Finding]:
        """What is found of one pod."""
        if judged.pod.deletion_timestamp is not None:  # that it ends is no fault
            return []
        pod, names = judged.pod, ", ".join(judged.opinion.unready)
        where = f"{pod.namespace}/{pod.name}"
        found = []
        if stance is Stance.FAILED:
            text = f"not ready by our own probes: {names}" if names else "not ready by our own probes, heard last"
            found.append(Finding(REASON_PROBES_FAILED, text, where))
        elif stance is Stance.DISPUTED_READY:
            text = f"not ready by our own probes, ready by the kubelet: {names}"
            found.append(Finding(REASON_KUBELET_DISAGREES, text, where))
        elif stance is Stance.DISPUTED_UNREADY:
            found.append(Finding(KUBELET_SAYS_UNREADY, "ready by our own probes, not by the kubelet", where))
        if not_made := self._not_made(pod):
            text = f"the kubelet's word is taken for containers whose probe is a command: {', '.join(not_made)}"
            found.append(Finding(PROBE_NOT_MADE, text, where))
        return found

    def _on_the_node(self, *, news: bool) -> list[Finding]:
        found = list(self._facts.node())
        if not self._source.synced:
            found.append(Finding(PODS_UNKNOWN, "the API server has not told the health pods of this node yet"))
        elif self._source.by_kubelet:
            text = "the API server tells nothing; the pods that the kubelet tells are looked at"
            found.append(Finding(API_SERVER_AWAY, text))
        elif not news:
            found.append(Finding(API_SERVER_AWAY, "the API server tells nothing; the last known pods are looked at"))
        return found

    def _publish(
        self,
        desk: Desk,
        judged: Sequence[Judged],
        node: Sequence[Finding],
        healths: Mapping[str, NodeHealth | None],
        *,
        all_known: bool,
    ) -> None:
        """healths: by uid, of the checks that count for each."""
        spoken = [one for one in judged if one.speaks and one.pod.deletion_timestamp is None]
        desk.keep({one.pod.uid for one in spoken})
        for one in spoken:
            condition = condition_of(healths[one.pod.uid], (*node, *one.findings))
            # That all is well is said when our own probes have been heard, the kubelet where it was silent, and which
            # entries have chosen the pod: a restart shall not open what was closed.
            heard = one.settled and all_known
            heard = heard and (self._facts.kubelet_known() or not was_said(one.pod.status, BY_KUBELET))
            if condition is not None and (heard or condition.status != STATUS_TRUE):
                desk.say(one.pod, condition)

    def _log(self) -> None:
        findings = self.findings()
        said = frozenset((finding.reason, finding.pod) for finding in findings)
        for finding in findings:
            if (finding.reason, finding.pod) not in self._said:
                log.warning("found", extra={"finding": finding.reason, "pod": finding.pod, "text": finding.text})
        for reason, pod in sorted(self._said - said):
            log.info("found no longer", extra={"finding": reason, "pod": pod})
        self._said = said
        self._log_words()

    def _log_words(self) -> None:
        """A line where our word on a pod has changed."""
        judged = self.judged()
        for one in judged:
            word = (one.opinion.containers, one.opinion.pod)
            if word != self._words.get(one.pod.uid):
                pod, unready = f"{one.pod.namespace}/{one.pod.name}", ",".join(one.opinion.unready)
                facts = {"pod": pod, "containers_ready": word[0], "ready": word[1], "unready": unready}
                log.info("our word on a health pod", extra=facts)
        self._words = {one.pod.uid: (one.opinion.containers, one.opinion.pod) for one in judged}
