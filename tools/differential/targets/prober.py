"""Workers, results and manager of the prober, step by step under a clock that the history moves."""

from functools import partial
from random import Random
from typing import Any
from unittest.mock import patch

import msgspec

from agent.kubelet.prober import manager as manager_module
from agent.kubelet.prober.manager import ProberManager, WorkerKey
from agent.kubelet.prober.prober import Prober
from agent.kubelet.prober.results import Results
from agent.kubelet.prober.worker import Worker
from agent.probe.result import HandlerError, HandlerResult, Outcome
from agent.wire.model import Container, Pod, PodStatus, ProbeType, ProbeUpdate, Result
from agent.wire.pod import parse_pod
from agent.wire.semantics import Semantics
from agent.wire.status import parse_status
from tools.differential import worlds
from tools.differential.target import Answers, History
from tools.differential.worlds import maybe

WORDS = {Result.SUCCESS: "Success", Result.FAILURE: "Failure", Result.UNKNOWN: "UNKNOWN"}
NAMES = {kind: str(kind) for kind in ProbeType}  # formatting an enum is slow
ORDER = (ProbeType.LIVENESS, ProbeType.READINESS, ProbeType.STARTUP)
OUTCOMES = ("success", "success", "success", "failure", "failure", "failure", "warning", "unknown", "error", "panic")


class ProberTarget:
    name = "prober"

    def draw(self, random: Random) -> History:
        pods = [worlds.draw_pod(random, uid) for uid in ("u", "v")[: 1 + maybe(random, 0.1)]]
        wall = worlds.START + random.choice((0.0, 0.5, 5.0, 60.0))
        for pod in pods:
            if maybe(random, 0.5):
                pod["status"] = {"conditions": [worlds.draw_condition(random, "Ready")]}
        current = [worlds.draw_status(random, pod, wall) for pod in pods]
        steps: list[Any] = []
        ahead = 0.0
        for index, status in enumerate(current):
            steps.append({"op": "status", "wall": wall, "ahead": ahead, "pod": index, "status": status})
            steps.append({"op": "add", "wall": wall, "ahead": ahead, "pod": index})
        for _ in range(random.randint(3, 9)):
            wall += random.choice((0.0, 0.5, 0.75, 1.0, 2.0, 10.0))
            if maybe(random, 0.02):  # somebody sets the clock
                step_s = random.choice((3600.0, -3600.0, -30.0))
                wall, ahead = wall + step_s, ahead + step_s
            index = random.randrange(len(pods))
            steps.append({"ahead": ahead, **self._step(random, index, pods[index], current, wall)})
        return {"start": worlds.START, "pods": pods, "steps": steps}

    def _step(self, random: Random, index: int, pod: Any, current: list[Any], wall: float) -> Any:
        kind, step = random.random(), {"wall": wall, "pod": index}
        if kind < 0.5:
            outcomes = [[random.choice(OUTCOMES) for _ in range(random.choice((1, 1, 1, 2, 3)))] for _ in range(3)]
            return {**step, "op": "probe", "outcomes": outcomes[: random.choice((1, 3))]}
        if kind < 0.75:
            current[index] = changed(random, pod, current[index], wall)
            return {**step, "op": "status", "status": current[index]}
        if kind < 0.9:
            return {**step, "op": "update", "status": current[index] or {}}
        return {**step, "op": random.choice(("add", "add", "stop", "remove", "cleanup"))}

    def answer(self, history: History, semantics: Semantics) -> Answers:
        with patch.object(manager_module, "Worker", _Steps):  # other tests of this process have the one with a thread
            return Scene(history, semantics).play()

    def told(self, answer: Answers) -> Answers:
        return answer


def changed(random: Random, pod: Any, status: Any, wall: float) -> Any:
    """Mostly one container that has changed, or its id alone; sometimes all anew, or none at all."""
    if status is None or maybe(random, 0.2):
        return worlds.draw_status(random, pod, wall) if maybe(random, 0.95) else None
    key = random.choice(("containerStatuses", "containerStatuses", "initContainerStatuses"))
    containers = list(status.get(key, ()))
    if containers:
        which = random.randrange(len(containers))
        containers[which] = worlds.draw_container_status(random, containers[which]["name"], wall)
        return {**status, key: containers}
    return status


class _Steps(Worker):
    """A worker without a thread: the history says when it probes."""

    def start(self) -> None:
        pass

    def alive(self) -> bool:
        return True


class _Script(Prober):
    """One attempt after the other gives the next outcome, the last one again and again."""

    outcomes: list[str]

    def attempt(self, *_of: object) -> Outcome:
        outcome = self.outcomes[0]
        self.outcomes = self.outcomes[1:] or self.outcomes
        if outcome == "panic":
            raise RuntimeError("a probe that panics")
        if outcome == "error":
            raise HandlerError("the runtime is gone", HandlerResult.UNKNOWN)
        return Outcome(HandlerResult(outcome), "said so")


class Scene:
    """A manager with its caches and whom it asks, and the time of the history."""

    def __init__(self, history: History, semantics: Semantics) -> None:
        self.steps = history["steps"]
        self.pods = [parse_pod(msgspec.json.encode(pod)) for pod in history["pods"]]
        self.wall, self.ahead = 0.0, 0.0
        self.known: dict[str, PodStatus] = {}
        self.updates: dict[ProbeType, list[ProbeUpdate]] = {kind: [] for kind in ORDER}
        self.events: list[str] = []
        self.caches = {kind: Results(partial(self.updated, kind)) for kind in ORDER}
        self.prober = self.make_prober()
        self.manager = ProberManager(
            get_pod_status=self.known.get,
            probe=self.prober.probe,
            readiness=self.caches[ProbeType.READINESS],
            liveness=self.caches[ProbeType.LIVENESS],
            startup=self.caches[ProbeType.STARTUP],
            semantics=semantics,
            wall=self.now,
            monotonic=lambda: self.now() - self.ahead,
            random=self.drawn,
            start_wall=history["start"],
        )

    def now(self) -> float:
        return self.wall

    def make_prober(self) -> Prober:
        return _Script(_nothing_runs, self._event)

    def drawn(self) -> float:
        """What a worker draws for its first pause."""
        raise AssertionError("no loop turns here")

    def updated(self, kind: ProbeType, update: ProbeUpdate) -> None:
        self.updates[kind].append(update)

    def play(self) -> Answers:
        return [self._step(step) for step in self.steps]

    def _event(self, _pod: Pod, _container: Container, kind: str, reason: str, message: str) -> None:
        self.events.append(f"{kind} {reason} {message}")

    def _step(self, step: Any) -> list[str]:
        self.wall, self.ahead = step["wall"], step["ahead"]
        if step["op"] == "probe":
            self._probe_all(step["outcomes"])
            return self.seen()
        return [*self.take(step), *self.seen()]

    def take(self, step: Any) -> list[str]:
        """Does what a step says, and tells what it gave."""
        pod = self.pods[step["pod"]]
        said: list[str] = []
        match step["op"]:
            case "status" if step.get("status") is None:
                self.known.pop(pod.uid, None)
            case "status":
                self.known[pod.uid] = parse_status(msgspec.json.encode(step["status"]))
            case "add":
                self.manager.add_pod(pod)
            case "stop":
                self.manager.stop_liveness_and_startup(pod)
            case "remove":
                self.manager.remove_pod(pod)
            case "cleanup":
                self.manager.cleanup_pods({pod.uid})
            case "update":
                filled = self.manager.update_pod_status(pod, parse_status(msgspec.json.encode(step["status"])))
                for statuses in (filled.init_container_statuses, filled.container_statuses):
                    said += [f"{c.name} started {go(c.started)} ready {go(c.ready)}" for c in statuses or ()]
        return said

    def _sorted(self) -> list[tuple[WorkerKey, Worker]]:
        return sorted(self.manager._workers.items())

    def _probe_all(self, outcomes: list[list[str]]) -> None:
        """One turn of every worker, as its run loop takes it: a probe, then whether it was stopped."""
        for index, (_, worker) in enumerate(self._sorted()):
            self.prober.outcomes = outcomes[index % len(outcomes)]
            worker._triggered = False
            if not worker.do_probe() or worker._stopped:
                worker._ended()

    def seen(self) -> list[str]:
        said = []
        for key, worker in self._sorted():
            state = worker.state
            streak = f"{WORDS[state.streak.last]} x {state.streak.run}, hold {go(state.on_hold)}"
            asked = f"stop {go(worker._stopped)}, trigger {go(worker._triggered)}"
            whose = f"{key.pod_uid} {key.container} {NAMES[key.probe_type]}"
            said.append(f"{whose}: id {state.container_id}, {streak}, {asked}")
        for kind in ORDER:
            name, updates = NAMES[kind], self.updates[kind]
            said += [f"{name} of {i}: {WORDS[result]}" for i, result in sorted(self.caches[kind]._results.items())]
            said += [f"{name} update {u.pod_uid} {u.container_id} {WORDS[u.result]}" for u in updates]
            updates.clear()
        said += self.events
        self.events.clear()
        return said


def _nothing_runs(*_arguments: object) -> Any:
    raise AssertionError("the script answers all probes")


def go(value: object) -> str:
    return "true" if value else "false"
