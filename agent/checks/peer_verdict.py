"""What follows for a node from whom it reaches over the pod network, and from what its peers say of themselves. Pure.

The table is in `agent.checks.builtin.pod_network`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import msgspec

from agent.checks.state import CheckState, Finding

NOT_ALONE = 1 / 3  # of all that a node and its mates ask: where they reach no more, most of the cluster is elsewhere
# Which finding is that of the whole.
BY_WEIGHT = (
    CheckState.FAILED,
    CheckState.UNKNOWN,
    CheckState.NOT_APPLICABLE,
    CheckState.SHARED,
    CheckState.WARNED,
)
SHOWN = 4  # names in a finding: those of a whole rack do not fit


class Way(StrEnum):
    """How far the packets got. `refused`: by the other host. `large packets lost`: a small request was answered, one of
    the size of the path MTU was not."""

    REACHED = "reached"
    REFUSED = "refused"
    SMALL_ONLY = "large packets lost"
    STALLED = "connected, then silent"
    SILENT = "silent"
    UNSENT = "cannot be sent"


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a peer says of itself. node: its name. verdict: of its check, "" without one. reached, lost: names of nodes,
    by its last run. api, dns: whether it reaches those Services, None where it does not ask. visitors: how many others
    have reached it lately. received: bytes of the request."""

    node: str = ""
    verdict: str = ""
    reached: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    api: bool | None = None
    dns: bool | None = None
    visitors: int = 0
    received: int = 0

    @property
    def has_asked(self) -> bool:
        return bool(self.reached or self.lost)

    @property
    def is_cut_off(self) -> bool:
        """It does not reach most of its own peers."""
        return len(self.lost) > len(self.reached)


@dataclass(frozen=True, slots=True)
class Probe:
    """One peer by one family of addresses (4 or 6). answer: None where the peer's agent gave none. ready: what the API
    server says of it."""

    node: str
    family: int
    way: Way
    answer: Answer | None = None
    detail: str = ""
    ready: bool = True

    @property
    def open(self) -> bool:
        return self.way in (Way.REACHED, Way.REFUSED)

    def __str__(self) -> str:
        return f"{self.node} {self.way}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True, slots=True)
class Leg:
    """One Service, asked one way. `of`: whose state it is in an Answer."""

    of: Literal["api", "dns"]
    name: str
    way: Way
    detail: str = ""

    @property
    def open(self) -> bool:
        return self.way is Way.REACHED

    def __str__(self) -> str:
        return f"{self.name} {self.way}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True, slots=True)
class Seen:
    """All that one run saw. known: peers in the list, None while there is no list. visitors: nodes that reached this
    one lately, None where the agent is too young. peers_denied, services_denied: names of NetworkPolicies that stop the
    agents' packets. list_trouble: why there is no list. list_forbidden: the API server refuses it to all agents."""

    own: str
    known: int | None
    probes: Sequence[Probe] = ()
    legs: Sequence[Leg] = ()
    visitors: Sequence[str] | None = ()
    peers_denied: Sequence[str] = ()
    services_denied: Sequence[str] = ()
    list_trouble: str = ""
    list_forbidden: bool = False


def judge(seen: Seen) -> Finding:
    """PASSED, FAILED where the fault is this node's, SHARED where the peers have it too, UNKNOWN where nothing shows
    whose it is, NOT_APPLICABLE with fewer than two peers, and where a policy keeps agents from one another. What is
    shared of Services only warns where the peers are reached: that the node's own network works is then proven."""
    if seen.known is None and seen.list_forbidden:  # so it is on all nodes
        return Finding(CheckState.SHARED, f"the API server refuses the list of peers: {seen.list_trouble}")
    if seen.known is None and _api_open(seen):  # this node's way to it works, and the first verdict closes no node
        return Finding(
            CheckState.SHARED, f"the API server is reached, no list of peers: {seen.list_trouble or 'unread'}"
        )
    if seen.known is None:
        return Finding(CheckState.UNKNOWN, f"no list of peers: {seen.list_trouble or 'not read yet'}")
    if seen.known < 2:
        return Finding(CheckState.NOT_APPLICABLE, "fewer than two other nodes have an agent: nothing to compare with")
    families = sorted({probe.family for probe in seen.probes})
    findings = [_of_peers(seen, [p for p in seen.probes if p.family == family]) for family in families]
    findings += [_of_service(seen, of) for of in ("api", "dns") if any(leg.of == of for leg in seen.legs)]
    if families and all(finding.state is CheckState.PASSED for finding in findings[: len(families)]):
        findings = [_warning(finding) if finding.state is CheckState.SHARED else finding for finding in findings]
    for state in BY_WEIGHT:
        outputs = [finding.output for finding in findings if finding.state is state]
        if outputs:
            return Finding(state, "; ".join(dict.fromkeys(outputs)))
    return Finding(CheckState.PASSED, "; ".join(dict.fromkeys(finding.output for finding in findings)))


def _warning(finding: Finding) -> Finding:
    return Finding(CheckState.WARNED, finding.output)


def _of_peers(seen: Seen, asked: Sequence[Probe]) -> Finding:
    """A peer that is lost and not ready is no witness: it is shut down, starts, or is closed itself."""
    probes = [probe for probe in asked if probe.ready or probe.open]
    if len(probes) < 2 and len(probes) < len(asked):
        return Finding(CheckState.SHARED, f"most peers are not ready: {_names([p for p in asked if not p.open])}")
    reached = [probe for probe in probes if probe.open]
    lost = [probe for probe in probes if not probe.open]
    if 2 * len(reached) >= len(probes):
        text = f"{_count(reached, probes)}, not {_listed([probe.node for probe in lost])}" if lost else "peers reached"
        return _inbound(seen, reached) or Finding(CheckState.PASSED, text)
    said = f"{_count(reached, probes)} over IPv{probes[0].family}: {_names(lost)}"
    if seen.peers_denied:
        return Finding(CheckState.NOT_APPLICABLE, f"{_policies(seen.peers_denied)} between agents: {said}")
    if all(probe.way is Way.UNSENT for probe in lost):
        return Finding(CheckState.FAILED, f"this node cannot send to its peers, {said}")
    answers = [probe.answer for probe in probes if probe.answer is not None and probe.answer.has_asked]
    if not reached:
        return _none_reached(seen, probes, answers, said)
    if not answers:
        return Finding(CheckState.UNKNOWN, f"no peer says how it is itself, {said}")
    if 2 * sum(answer.is_cut_off for answer in answers) > len(answers):
        return _together(seen, reached, lost, answers, said)
    elsewhere = {name for answer in answers if not answer.is_cut_off for name in answer.reached}
    if sum(probe.node in elsewhere for probe in lost) > 1:
        return Finding(CheckState.FAILED, f"others reach peers that this node does not, {said}")
    return Finding(CheckState.WARNED, f"no other node is known to reach the lost peers either, {said}")


def _none_reached(seen: Seen, probes: Sequence[Probe], answers: Sequence[Answer], said: str) -> Finding:
    """Of many peers not all are dead. Of two both may be, unless both let themselves be connected to."""
    alive = len(probes) > 2 or all(probe.way in (Way.SMALL_ONLY, Way.STALLED) for probe in probes)
    came = set(seen.visitors or ()) & {probe.node for probe in probes}
    if not all(probe.way is Way.SILENT for probe in probes):  # what was connected to got packets back
        came = set()
    if answers or came:
        one_way = f"one-way, {_plural(len(came), 'peer')} reached this node: " if came else ""
        return Finding(CheckState.FAILED, f"{one_way}{said}")
    if alive or not _api_open(seen):
        return Finding(CheckState.FAILED, said)
    return Finding(CheckState.UNKNOWN, f"perhaps both peers are down, the API server is reached: {said}")


def _together(
    seen: Seen, reached: Sequence[Probe], lost: Sequence[Probe], answers: Sequence[Answer], said: str
) -> Finding:
    """Most of the reached peers are cut off as well: from a few nodes, or with a few nodes from all others. Where the
    API server is reached nothing shows which; where it is not, and they reach few nodes together, they are the few."""
    hits = len(reached) + sum(len(answer.reached) for answer in answers)
    asked = hits + len(lost) + sum(len(answer.lost) for answer in answers)
    if not _api_open(seen) and hits <= NOT_ALONE * asked:
        return Finding(CheckState.FAILED, f"cut off with few others, {said}")
    return Finding(CheckState.SHARED, f"most reached peers are cut off as well, {said}")


def _inbound(seen: Seen, reached: Sequence[Probe]) -> Finding | None:
    """Peers that reach most of theirs but not this node, while nobody does."""
    answers = [probe.answer for probe in reached if probe.answer is not None]
    lose = sorted({a.node for a in answers if seen.own in a.lost and not a.is_cut_off})
    find = [a for a in answers if seen.own in a.reached]
    if seen.visitors is None or seen.visitors or len(lose) < 2 or find:
        return None
    if seen.peers_denied:
        return Finding(CheckState.NOT_APPLICABLE, f"{_policies(seen.peers_denied)} between agents")
    return Finding(CheckState.FAILED, f"one-way: this node reaches its peers, they do not reach it: {_listed(lose)}")


def _of_service(seen: Seen, of: Literal["api", "dns"]) -> Finding:
    legs = [leg for leg in seen.legs if leg.of == of]
    lost = [leg for leg in legs if not leg.open]
    said = "; ".join(map(str, lost))
    if not lost:
        return Finding(CheckState.PASSED, f"{'API server' if of == 'api' else 'DNS'} reached")
    if seen.services_denied:
        return Finding(CheckState.SHARED, f"{_policies(seen.services_denied)}, so not judged: {said}")
    if all(leg.way is Way.UNSENT for leg in lost):
        return Finding(CheckState.FAILED, said)
    theirs = [_state_of(probe.answer, of) for probe in _one_each(seen.probes) if probe.answer is not None]
    known = [state for state in theirs if state is not None]
    if not known:
        return Finding(CheckState.UNKNOWN, f"no peer says whether it is reached from there: {said}")
    there = sum(known)
    if 2 * there > len(known):
        return Finding(CheckState.FAILED, f"{said}; reached from {there} of {_plural(len(known), 'peer')}")
    return Finding(CheckState.SHARED, f"not of this node alone, reached from {there} of {len(known)} peers: {said}")


def _state_of(answer: Answer, of: Literal["api", "dns"]) -> bool | None:
    return answer.api if of == "api" else answer.dns


def _one_each(probes: Sequence[Probe]) -> list[Probe]:
    """Of a peer that answered by two families, one."""
    return list({probe.node: probe for probe in probes if probe.answer is not None}.values())


def _api_open(seen: Seen) -> bool:
    return any(leg.open for leg in seen.legs if leg.of == "api")


def _policies(names: Sequence[str]) -> str:
    return f"NetworkPolicy {_listed(names)} stops packets"


def _count(reached: Sequence[Probe], probes: Sequence[Probe]) -> str:
    return f"{len(reached)} of {_plural(len(probes), 'peer')} reached"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _names(probes: Sequence[Probe]) -> str:
    """By what happened, the most frequent first; names in order."""
    ways: dict[str, list[str]] = {}
    for probe in probes:
        ways.setdefault(str(probe.way) + (f" ({probe.detail})" if probe.detail else ""), []).append(probe.node)
    key: Callable[[tuple[str, list[str]]], tuple[int, str]] = lambda item: (-len(item[1]), item[0])  # noqa: E731
    return "; ".join(f"{_listed(sorted(nodes))} {way}" for way, nodes in sorted(ways.items(), key=key))


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
