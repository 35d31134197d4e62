"""Fixes of upstream's mistakes, on in the agent and off in the comparison: switched on, each shows, and nothing else.

A history that differs with a fix on has to be of the kind that the fix is for; those that are not have to stay equal.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from agent.semantics import Semantics
from kube.times import parse_time
from tests.differential.compare import BATCH, quiet, semantics_of
from tests.differential.kubelet import GATES, Kubelet
from tests.differential.target import History
from tests.differential.targets import TARGETS

HISTORIES = BATCH * len(GATES)
MOST = 20_000


@dataclass(frozen=True)
class Fix:
    """`name`: the field of Semantics. `concerns`: may this history differ?"""

    name: str
    target: str
    concerns: Callable[[History], bool]


def _added_again(history: History) -> bool:
    added = [step["pod"] for step in history["steps"] if step["op"] == "add"]
    return len(added) > len(set(added))


def _has_gates_and_sidecars(history: History) -> bool:
    spec = history["pod"]["spec"]
    sidecars = [c for c in spec.get("initContainers", ()) if c.get("restartPolicy") == "Always"]
    return bool(spec.get("readinessGates")) and bool(sidecars)


def _ended_without_record(history: History) -> bool:
    known = {container["name"] for container in history["runtime"]["containers"]}
    statuses = (history["status"].get(key, ()) for key in ("containerStatuses", "initContainerStatuses"))
    return any("terminated" in s["state"] and s["name"] not in known for some in statuses for s in some)


def _removed(history: History) -> bool:
    return any(step["op"] == "event" and step["kind"] == "deleted" for step in history["steps"])


def _clock_was_set(history: History) -> bool:
    """Or a container shows a start that is yet to come, as where it was set between the two."""
    return any(step["ahead"] or _starts_later(step.get("status") or {}, step["wall"]) for step in history["steps"])


def _starts_later(status: Any, wall: float) -> bool:
    containers = (c for key in ("containerStatuses", "initContainerStatuses") for c in status.get(key, ()))
    starts = (parse_time((c.get("state", {}).get("running") or {}).get("startedAt")) for c in containers)
    return any(start is not None and start > wall for start in starts)


FIXES = (
    Fix("fix_add_pod_ends_at_first_worker", "prober", _added_again),
    Fix("fix_readiness_without_sidecars", "status", _has_gates_and_sidecars),
    Fix("fix_ended_containers_without_record", "actions", _ended_without_record),
    Fix("fix_removed_container_stays_known", "pleg", _removed),
    Fix("fix_clock_that_is_set", "prober", _clock_was_set),
)


def shown(fix: Fix, kubelet: Kubelet, seed: int) -> tuple[int, list[History]]:
    """How many histories differ with the fix on, under all gates, a batch each in turns; and those of them that must
    not. Goes on until some do."""
    target = next(t for t in TARGETS if t.name == fix.target)
    random, every_gates = Random(f"{seed} {fix.name}"), itertools.cycle(GATES)
    differing: list[History] = []
    for done in range(0, MOST, BATCH):
        if differing and done >= HISTORIES:
            break
        gates = dict(next(every_gates))
        semantics: Semantics = replace(semantics_of(gates), **{fix.name: True})
        drawn = [target.draw(random) for _ in range(BATCH)]
        kubelet.ask(target.name, gates, drawn)
        with quiet():
            ours: list[Any] = [target.answer(history, semantics) for history in drawn]
        pairs = zip(drawn, ours, kubelet.answers(), strict=True)
        differing += [history for history, agent, upstream in pairs if target.told(agent) != target.told(upstream)]
    return len(differing), [history for history in differing if not fix.concerns(history)]
