"""Runs a target: draws histories, asks agent and kubelet, stops at the first difference and shrinks it."""

import json
import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any

from agent.wire.semantics import V1_16, Semantics
from tools.differential.kubelet import OLD_GATES, Kubelet, gates_of
from tools.differential.shrink import Differs, shrunk
from tools.differential.target import Answers, History, Target
from tools.differential.targets.handlers import hurried

BATCH = 200
BY_REAL_TIME = frozenset({"handlers", "grpc"})
"""Targets whose probes meet a network: on a busy machine one may take longer than it is given, on either side alone."""
AGAIN = 3
"""So often such a history is played once more before it is one that differs: what differs by its content does so each
time."""
FORGIVEN, OF = 4, 1_000
"""So many histories may agree only when they are played again, or one in so many: more is no matter of a busy machine
but a difference that does not show each time."""
LONGEST_S, FEW = 120.0, 8
"""So long such a history is cut down, so many smaller ones at a time."""
SHOWN = 4000


@dataclass(frozen=True)
class Difference:
    """The smallest history found, with both answers. `gates`: the feature gates under which they differ."""

    target: str
    history: History
    gates: dict[str, bool]
    agent: Answers
    kubelet: Answers

    def __str__(self) -> str:
        steps = self.agent if isinstance(self.agent, list) else [self.agent]
        others = self.kubelet if isinstance(self.kubelet, list) else [self.kubelet]
        pairs = list(zip(steps, others, strict=False))
        first = next((i for i, (ours, theirs) in enumerate(pairs) if ours != theirs), len(pairs))
        ours, theirs = (answers[first] if first < len(answers) else "nothing" for answers in (steps, others))
        gates = ", ".join(f"{name}={on}" for name, on in self.gates.items())
        return (
            f"{self.target}: the agent differs from the kubelet\n  history {shortened(self.history)}\n"
            f"  with    {gates}\n  answer  {first}\n  agent   {json.dumps(ours)}\n  kubelet {json.dumps(theirs)}"
        )


def shortened(value: Any) -> str:
    """JSON, of which no more is shown than can be read."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"


@dataclass(frozen=True)
class Tally:
    """Of one target: how many histories in how many seconds, and the difference that ended it, if one did. `forgiven`:
    those that agreed only when they were played again."""

    target: str
    histories: int
    seconds: float
    difference: Difference | None = None
    forgiven: tuple[History, ...] = ()


MISTAKES: dict[str, Any] = dict.fromkeys(
    (field.name for field in fields(Semantics) if field.name.startswith("fix_")), False
)
"""No fix of the agent's is on."""


def semantics_of(gates: dict[str, bool]) -> Semantics:
    """The kubelet as it is: these gates, no mistake of its own mended. The one of 1.16 where the gates are its."""
    if gates in OLD_GATES:
        return replace(V1_16, **MISTAKES)
    return Semantics(
        change_container_status_on_kubelet_restart=gates["ChangeContainerStatusOnKubeletRestart"],
        container_restart_rules=gates["ContainerRestartRules"],
        restart_all_containers_on_container_exits=gates["RestartAllContainersOnContainerExits"],
        pod_ready_to_start_containers_condition=gates["PodReadyToStartContainersCondition"],
        pleg_on_demand_relist=gates["PLEGOnDemandRelist"],
        node_declared_features=gates["NodeDeclaredFeatures"],
        kubelet_registration_get_on_exists_only=gates["KubeletRegistrationGetOnExistsOnly"],
        **MISTAKES,
    )


def compare(
    target: Target, kubelet: Kubelet, *, batches: Sequence[tuple[int, int]], seed: int, limit_s: float = math.inf
) -> Tally:
    """The batches (number, size), up to the first history that differs, or as many as begin within the limit. Each
    is drawn from the seed and its number alone, so it is the same whoever asks for it."""
    began, done, forgiven = time.monotonic(), 0, list[History]()
    for number, size in batches:
        if time.monotonic() - began >= limit_s:
            break
        gates, drawn = drawn_batch(target, number, size, seed)
        ours, theirs = answers(target, kubelet, gates, drawn)
        for history, agent, upstream in zip(drawn, ours, theirs, strict=True):
            if agent != upstream:
                if differs_again(target, kubelet, gates, history):
                    difference = _smallest(target, kubelet, gates, history)
                    return Tally(target.name, done, time.monotonic() - began, difference, tuple(forgiven))
                forgiven.append(history)
            done += 1
    return Tally(target.name, done, time.monotonic() - began, forgiven=tuple(forgiven))


def too_many(forgiven: int, histories: int) -> bool:
    """Whether so many of a target's histories agreed only when they were played again that the target differs."""
    return forgiven > max(FORGIVEN, histories // OF)


def differs_again(target: Target, kubelet: Kubelet, gates: dict[str, bool], history: History) -> bool:
    """Whether it differs however often it is played; at once where no time but the history's own passes."""
    if target.name not in BY_REAL_TIME:
        return True
    return all(ours != theirs for ours, theirs in (answers(target, kubelet, gates, [history]) for _ in range(AGAIN)))


def batches_of(histories: int) -> list[tuple[int, int]]:
    """(number, size) of each batch."""
    return [(n, min(BATCH, histories - n * BATCH)) for n in range(-(-histories // BATCH))]


def drawn_batch(target: Target, number: int, size: int, seed: int) -> tuple[dict[str, bool], list[History]]:
    """The feature gates of a batch, and its histories."""
    random = Random(f"{seed} {target.name} {number}")
    every = gates_of(target.name)
    gates = dict(every[0] if number % 2 == 0 else every[number // 2 % len(every)])
    return gates, [target.draw(random) for _ in range(size)]


def answers(
    target: Target, kubelet: Kubelet, gates: dict[str, bool], histories: Sequence[History]
) -> tuple[list[Answers], list[Answers]]:
    """The agent's and the kubelet's. What one side cannot answer is answered by {"error": ...}."""
    kubelet.ask(target.name, gates, histories)
    semantics = semantics_of(gates)
    with quiet():
        ours = [agents_answer(target, history, semantics) for history in histories]
    return [target.told(answer) for answer in ours], [target.told(answer) for answer in kubelet.answers()]


@contextmanager
def quiet() -> Iterator[None]:
    """What the agent logs is of no interest here: what goes wrong in a history is meant to."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def agents_answer(target: Target, history: History, semantics: Semantics) -> Answers:
    try:
        return target.answer(history, semantics)
    except Exception as e:  # noqa: BLE001 - whatever the agent breaks with is its answer
        return {"error": f"{type(e).__name__}: {e}"}


def _smallest(target: Target, kubelet: Kubelet, gates: dict[str, bool], history: History) -> Difference:
    def differs(candidates: list[History]) -> list[bool]:
        ours, theirs = answers(target, kubelet, gates, candidates)
        told = zip(ours, theirs, strict=True)
        return [a != b and not (_broken(a) and whole) and not _broken(b) for a, b in told]

    (first,), _ = answers(target, kubelet, gates, [history])
    whole = not _broken(first)  # else it is the breaking that differs
    smallest = _cut_down(target, kubelet, gates, history, differs)
    (agent,), (upstream,) = answers(target, kubelet, gates, [smallest])
    return Difference(target.name, smallest, gates, agent, upstream)


def _cut_down(target: Target, kubelet: Kubelet, gates: dict[str, bool], history: History, differs: Differs) -> History:
    """Where probes meet a network many a server says nothing once a part is left out, and takes the whole time of a
    probe: so there is less of that, few are asked for together, and it is not gone on for ever."""
    if target.name not in BY_REAL_TIME:
        return shrunk(history, differs)
    until, soon = time.monotonic() + LONGEST_S, hurried(history)
    if not differs_again(target, kubelet, gates, soon):
        soon = history

    def differs_each_time(candidates: list[History]) -> list[bool]:
        return [
            found and differs_again(target, kubelet, gates, candidate)
            for candidate, found in zip(candidates, differs(candidates), strict=True)
        ]

    return shrunk(soon, differs_each_time, at_once=FEW, enough=lambda: time.monotonic() >= until)


def _broken(answer: Any) -> bool:
    return isinstance(answer, dict) and "error" in answer
