"""Fixes of upstream's mistakes, on in the agent and off in the comparison: switched on, each shows, and nothing else.

The driver has each mistake mended, too: with the fix on, the agent answers each history as a kubelet does whose mistake
is mended, and some of them otherwise than one whose is not. And these have to be of the kind that the fix is for.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from agent.wire.semantics import Semantics
from kube.times import parse_time
from tools.differential.compare import BATCH, agents_answer, quiet, semantics_of
from tools.differential.kubelet import GATES, Kubelet
from tools.differential.target import Answers, History, Target
from tools.differential.targets import TARGETS

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


def _begins_to_end(history: History) -> bool:
    return any(step["op"] == "stop" for step in history["steps"])


FIXES = (
    Fix("fix_add_pod_ends_at_first_worker", "prober", _added_again),
    Fix("fix_exec_probes_of_ending_pods", "loops", _begins_to_end),
    Fix("fix_readiness_without_sidecars", "status", _has_gates_and_sidecars),
    Fix("fix_ended_containers_without_record", "actions", _ended_without_record),
    Fix("fix_removed_container_stays_known", "pleg", _removed),
    Fix("fix_clock_that_is_set", "prober", _clock_was_set),
)


@dataclass(frozen=True)
class Shown:
    """`differing`: how many histories differ from the kubelet as it is. `strange`: those of them that must not, and all
    that differ from a kubelet that is mended."""

    differing: int
    strange: list[History]


def shown(fix: Fix, kubelet: Kubelet, seed: int) -> Shown:
    """With the fix on, under all gates, a batch each in turns. Goes on until some histories differ."""
    target = next(t for t in TARGETS if t.name == fix.target)
    random, every_gates = Random(f"{seed} {fix.name}"), itertools.cycle(GATES)
    differing, strange = 0, list[History]()
    for done in range(0, MOST, BATCH):
        if differing and done >= HISTORIES:
            break
        gates = dict(next(every_gates))
        semantics: Semantics = replace(semantics_of(gates), **{fix.name: True})
        drawn = [target.draw(random) for _ in range(BATCH)]
        with quiet():
            ours = [target.told(agents_answer(target, history, semantics)) for history in drawn]
        as_it_is = _answers(kubelet, target, gates, drawn)
        mended = _answers(kubelet, target, gates, drawn, fix.name)
        for history, agent, upstream, better in zip(drawn, ours, as_it_is, mended, strict=True):
            differs = agent != upstream
            differing += differs
            if agent != better or (differs and not fix.concerns(history)):
                strange.append(history)
    return Shown(differing, strange)


def _answers(
    kubelet: Kubelet, target: Target, gates: dict[str, bool], drawn: list[History], *mended: str
) -> list[Answers]:
    kubelet.ask(target.name, gates, drawn, mended)
    return [target.told(answer) for answer in kubelet.answers()]
