"""Named fixes of the kubelet's mistakes, switched on one at a time: exactly their differences appear, under all gates.

Each is off where agent and kubelet are compared. On, histories must differ, and each that does must differ where the
fix says so: in the step and in the fields of the answer that its row in docs/kubelet-parity.md tells of.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from agent.semantics import Semantics
from kube.times import parse_time
from tests.differential.compare import BATCH, quiet, semantics_of
from tests.differential.kubelet import GATES, Kubelet
from tests.differential.target import Answers, History
from tests.differential.targets import TARGETS

HISTORIES = 1000
MOST = 20_000


@dataclass(frozen=True)
class Fix:
    """`name`: the field of Semantics. `explains`: whether such a history may differ so, in the agent's answers and the
    kubelet's."""

    name: str
    target: str
    explains: Callable[[History, Answers, Answers], bool]


def _first(ours: Answers, theirs: Answers) -> int:
    """The first step that differs; what follows from it differs as it will."""
    return next(number for number, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1])


def _workers_are_added(history: History, ours: Answers, theirs: Answers) -> bool:
    """A pod that is added again has workers more, and nothing else is different."""
    at = _first(ours, theirs)
    step = history["steps"][at]
    before = [s["pod"] for s in history["steps"][:at] if s["op"] == "add"]
    more, fewer = Counter(ours[at]) - Counter(theirs[at]), Counter(theirs[at]) - Counter(ours[at])
    uid = history["pods"][step["pod"]]["metadata"]["uid"]
    added_again = step["op"] == "add" and step["pod"] in before
    return added_again and not fewer and all(line.startswith(f"{uid} ") and ": id , " in line for line in more)


def _sidecars_are_looked_at(history: History, ours: Answers, theirs: Answers) -> bool:
    """A pod with gates and sidecars is to be reconciled, or not, whenever it is seen."""
    spec = history["pod"]["spec"]
    sidecars = [c for c in spec.get("initContainers", ()) if c.get("restartPolicy") == "Always"]
    others = [[{**answer, "reconcile": None} for answer in answers] for answers in (ours, theirs)]
    return bool(spec.get("readinessGates")) and bool(sidecars) and others[0] == others[1]


def _ended_ones_stay(history: History, ours: Answers, theirs: Answers) -> bool:
    """Who has ended by the status alone is not started as if it never were. Of an init container the walk goes on from
    there: none before it is started for the first time, and what comes behind it may be."""
    known = {container["name"] for container in history["runtime"]["containers"]}
    statuses = (history["status"].get(key, ()) for key in ("containerStatuses", "initContainerStatuses"))
    ended = {s["name"] for some in statuses for s in some if "terminated" in s["state"]} - known
    inits, containers = (
        [c["name"] for c in history["pod"]["spec"].get(k, ())] for k in ("initContainers", "containers")
    )
    reached = max((number for number, name in enumerate(inits) if name in ended), default=-1)
    fewer, more = _less(theirs, ours), _less(ours, theirs)
    may_start = {*inits[reached:], *containers} if reached >= 0 else set()
    changed = {key for key in ours if ours[key] != theirs[key]}
    only_starts = changed <= {"init", "start", "killPod", "createSandbox"}
    return bool(ended) and only_starts and fewer <= {*ended, *inits[: reached + 1]} and more <= ended | may_start


def _less(some: Answers, others: Answers) -> set[str]:
    """Who is started by one and not by the other."""
    return {name for key in ("init", "start") for name in set(some[key]) - set(others[key])}


def _removed_ones_go(history: History, ours: Answers, theirs: Answers) -> bool:
    """What was removed is in the cache no more, so who waits for something newer may be freed by that; also where it is
    still listed, and the cache holds what it held before."""
    at = _first(ours, theirs)
    step, mine, others = history["steps"][at], ours[at], theirs[at]
    removed = step["op"] == "event" and step["kind"] == "deleted"
    changed = {key for key in mine if mine[key] != others[key]}
    pods = {uid for uid in {*mine["cache"], *others["cache"]} if mine["cache"].get(uid) != others["cache"].get(uid)}
    mine_freed, others_freed = mine.get("freed", {}), others.get("freed", {})
    waits = {w for w in {*mine_freed, *others_freed} if mine_freed.get(w) != others_freed.get(w)}
    pods |= {history["steps"][int(wait)]["uid"] for wait in waits}
    return removed and changed <= {"cache", "freed"} and pods == {step["uid"]}


def _age_is_by_another_clock(history: History, ours: Answers, theirs: Answers) -> bool:
    """After the clock was set, or while a container shows a start that is yet to come, as where it was set between the
    two: what depends on how old a container is, so whether it is probed, and what it counts as until it is."""
    at = _first(ours, theirs)
    before = history["steps"][: at + 1]
    was_set = any(step["ahead"] or _starts_later(step.get("status") or {}, step["wall"]) for step in before)
    return was_set and before[-1]["op"] in ("probe", "update")


def _starts_later(status: Any, wall: float) -> bool:
    containers = (c for key in ("containerStatuses", "initContainerStatuses") for c in status.get(key, ()))
    starts = (parse_time((c.get("state", {}).get("running") or {}).get("startedAt")) for c in containers)
    return any(start is not None and start > wall for start in starts)


FIXES = (
    Fix("fix_add_pod_ends_at_first_worker", "prober", _workers_are_added),
    Fix("fix_readiness_without_sidecars", "status", _sidecars_are_looked_at),
    Fix("fix_ended_containers_without_record", "actions", _ended_ones_stay),
    Fix("fix_removed_container_stays_known", "pleg", _removed_ones_go),
    Fix("fix_clock_that_is_set", "prober", _age_is_by_another_clock),
)


def shown(fix: Fix, kubelet: Kubelet, seed: int) -> tuple[int, list[History]]:
    """How many histories differ with the fix on; and those of them that it does not explain. Goes on until some do."""
    differing, strange = 0, list[History]()
    for done, (history, ours, theirs) in enumerate(_played(fix, kubelet, seed)):
        if done % BATCH == 0 and done >= HISTORIES and differing:
            break
        if ours != theirs:
            differing += 1
            if not fix.explains(history, ours, theirs):
                strange.append(history)
    return differing, strange


def _played(fix: Fix, kubelet: Kubelet, seed: int) -> Iterator[tuple[History, Answers, Answers]]:
    """Histories with both answers, a batch after the other under other feature gates."""
    target = next(t for t in TARGETS if t.name == fix.target)
    random = Random(f"{seed} {fix.name}")
    for number in range(MOST // BATCH):
        gates = dict(GATES[number % len(GATES)])
        semantics: Semantics = replace(semantics_of(gates), **{fix.name: True})
        drawn = [target.draw(random) for _ in range(BATCH)]
        kubelet.ask(target.name, gates, drawn)
        with quiet():
            ours: list[Any] = [target.answer(history, semantics) for history in drawn]
        for history, agent, upstream in zip(drawn, ours, kubelet.answers(), strict=True):
            yield history, target.told(agent), target.told(upstream)
