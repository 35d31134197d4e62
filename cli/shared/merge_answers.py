"""Merges the answers of several extenders: who answered, whose answer is shown, where they differ. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from extender.web.report import GatesTold, Head, NodeVerdict
from kube.objects import UNREADABLE

T = TypeVar("T", bound=Head)


@dataclass(frozen=True)
class Reply:
    """The reply of one extender to one request."""

    name: str  # of its pod, or its URL
    host: str = ""  # its node, "" if unknown
    body: bytes | None = None  # None without an answer
    problem: str = ""  # why there is no answer: one line with cause and remedy
    not_found: bool = False  # the extender answered that it has no such path or object


@dataclass(frozen=True)
class Replies(Generic[T]):
    """The decoded replies of all extenders to one request."""

    answers: Mapping[str, T] = field(default_factory=dict)  # by the extender's name, in the order of the requests
    problems: tuple[str, ...] = ()  # why the other extenders gave no answer, one line each
    not_found: int = 0  # how many of the problems are that there is no such path

    @property
    def asked(self) -> int:
        """How many extenders were asked."""
        return len(self.answers) + len(self.problems)


def decode(replies: Iterable[Reply], kind: type[T]) -> Replies[T]:
    """Decodes the replies. A body of another kind becomes a problem."""
    decoder = msgspec.json.Decoder(kind)
    answers: dict[str, T] = {}
    problems: list[str] = []
    not_found = 0
    for reply in replies:
        not_found += reply.not_found
        if reply.body is None:
            problems.append(reply.problem)
            continue
        try:
            answers[reply.name] = decoder.decode(reply.body)
        except (*UNREADABLE, RecursionError):
            problems.append(f"{reply.name} sent no report; check that it is an extender of this release")
    return Replies(answers, tuple(problems), not_found)


def freshest(answers: Mapping[str, T]) -> tuple[str, T] | None:
    """The extender with the newest data from the API server. Extenders that give verdicts come first."""

    def staleness(item: tuple[str, T]) -> tuple[bool, float]:
        last = item[1].last_word_seconds
        return bool(item[1].not_answering), float("inf") if last is None else last

    return min(answers.items(), key=staleness, default=None)


def longest(answers: Mapping[str, T]) -> tuple[str, T] | None:
    """The extender whose memory reaches back furthest."""
    return max(answers.items(), key=lambda item: item[1].since_start_seconds or 0.0, default=None)


@dataclass(frozen=True)
class Difference:
    """A node on which the extenders disagree."""

    node: str
    verdicts: Mapping[str, str]  # by the extender's name: "open", the reason, or "unknown node"


def differences(nodes: Mapping[str, Sequence[NodeVerdict]]) -> list[Difference]:
    """The nodes for which kube-scheduler gets another verdict from another extender. nodes: by the extender's name."""
    reasons = {replica: {one.node: one.reason for one in verdicts} for replica, verdicts in nodes.items()}
    found = []
    for name in sorted({name for one in reasons.values() for name in one}):
        verdicts = {replica: one.get(name, "unknown node") or "open" for replica, one in reasons.items()}
        if len(set(verdicts.values())) > 1:
            found.append(Difference(name, verdicts))
    return found


def releases(answers: Mapping[str, Head]) -> list[str]:
    """The releases of the extenders, without duplicates."""
    return sorted({one.release for one in answers.values() if one.release})


def limits_in_force(gates: GatesTold | None) -> list[str]:
    """What holds nodes open or closed at present, a few words each: caps, storms, orders."""
    if gates is None:
        return []
    found = []
    held = sum(gate.cap.held for gate in gates.gates if gate.armed) or gates.cap.held
    if held:
        found.append(f"the cap holds {held} open")
    found += [f"storm at gate {gate.gate}" for gate in gates.gates for _ in gate.storms]
    found += [f"{order.order} by {order.author or 'an unknown author'}" for order in gates.orders]
    return found
