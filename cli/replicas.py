"""What several extenders said, together: who answered, whose word is taken, where they differ. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from extender.web.schema import GatesTold, Head, NodeVerdict
from kube.objects import UNREADABLE

T = TypeVar("T", bound=Head)


@dataclass(frozen=True)
class Said:
    """What one extender said. name: of its pod, or its URL. host: its node, "" if not known.

    body: None where there is no answer; then problem says why, in a line with cause and remedy. missing: it answers,
    but has no such path, or knows no such thing.
    """

    name: str
    host: str = ""
    body: bytes | None = None
    problem: str = ""
    missing: bool = False


@dataclass(frozen=True)
class Heard(Generic[T]):
    """answers: of those that gave one, by name, in order. problems: why the others did not, one line each.

    missing: how many of the problems are that there is no such path.
    """

    answers: Mapping[str, T] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    missing: int = 0

    @property
    def asked(self) -> int:
        return len(self.answers) + len(self.problems)


def hear(said: Iterable[Said], kind: type[T]) -> Heard[T]:
    """Decoded; what is no such answer is a problem."""
    decoder = msgspec.json.Decoder(kind)
    answers: dict[str, T] = {}
    problems: list[str] = []
    missing = 0
    for one in said:
        missing += one.missing
        if one.body is None:
            problems.append(one.problem)
            continue
        try:
            answers[one.name] = decoder.decode(one.body)
        except (*UNREADABLE, RecursionError):
            problems.append(f"{one.name} gives no report; is it an extender of this release?")
    return Heard(answers, tuple(problems), missing)


def freshest(answers: Mapping[str, T]) -> tuple[str, T] | None:
    """Of those that give verdicts the one that heard from the API server last; if none does, of all."""

    def behind(item: tuple[str, T]) -> tuple[bool, float]:
        last = item[1].last_word_seconds
        return bool(item[1].not_answering), float("inf") if last is None else last

    return min(answers.items(), key=behind, default=None)


def longest(answers: Mapping[str, T]) -> tuple[str, T] | None:
    """Whose memory reaches back the furthest."""
    return max(answers.items(), key=lambda item: item[1].since_start_seconds or 0.0, default=None)


@dataclass(frozen=True)
class Difference:
    """A node of which the replicas do not say the same: what each says, by the replica's name."""

    node: str
    said: Mapping[str, str]


def differences(nodes: Mapping[str, Sequence[NodeVerdict]]) -> list[Difference]:
    """By replica, what it says of each node: which of them differ in what kube-scheduler is told."""
    told = {replica: {one.node: one.reason for one in verdicts} for replica, verdicts in nodes.items()}
    names = sorted({name for one in told.values() for name in one})
    found = []
    for name in names:
        said = {replica: one.get(name, "not known") or "open" for replica, one in told.items()}
        if len(set(said.values())) > 1:
            found.append(Difference(name, said))
    return found


def releases(answers: Mapping[str, Head]) -> list[str]:
    return sorted({one.release for one in answers.values() if one.release})


def brakes(gates: GatesTold | None) -> list[str]:
    """What holds nodes open or closed at present, in a few words each: caps, storms, orders."""
    if gates is None:
        return []
    found = []
    held = sum(gate.cap.held for gate in gates.gates if gate.armed) or gates.cap.held
    if held:
        found.append(f"the cap holds {held} open")
    found += [f"storm at gate {gate.gate}" for gate in gates.gates for _ in gate.storms]
    found += [f"{order.order} by {order.author or 'somebody'}" for order in gates.orders]
    return found
