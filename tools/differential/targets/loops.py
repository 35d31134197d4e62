"""The loops of the prober's workers: pauses, ticks, triggers and ends, with probes that take their time.

Workers run as they do in the agent, by a clock that passes when all of them wait. Of a stop, a trigger and a tick that
are there at once a kubelet takes any; in the driver it takes the one that the agent does.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any
from unittest.mock import patch

from agent.kubelet.prober import manager as manager_module
from agent.kubelet.prober import worker as worker_module
from agent.kubelet.prober.prober import Prober
from agent.probe.exec import timeouts_are_no_failures
from agent.processes.command import Completed, ExecTimeout, RuntimeUnavailable
from agent.wire.model import ProbeType, ProbeUpdate
from agent.wire.semantics import Semantics
from tools.differential import worlds
from tools.differential.target import Answers, History
from tools.differential.targets.prober import NAMES, WORDS, Scene, changed
from tools.differential.virtual import Virtual
from tools.differential.worlds import Json, maybe

A_WHILE_S = 3600.0
"""Longer than any probe of a history takes."""
PAUSES = (0.0, 0.125, 0.5, 0.75, 0.875)
SECONDS = (*[0.0] * 6, 0.125, 0.5, 1.0, 2.5)
KINDS = tuple(probe_type.lower() for probe_type in ProbeType)
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
STATUSES = ("containerStatuses", "initContainerStatuses")


class LoopsTarget:
    name = "loops"

    def draw(self, random: Random) -> History:
        pods = [worlds.draw_pod(random, uid) for uid in ("u", "v")[: 1 + maybe(random, 0.1)]]
        for pod in pods:
            if maybe(random, 0.7):  # else there is little that a loop could do
                pod["metadata"].pop("deletionTimestamp", None)
        wall = worlds.START + random.choice((0.0, 0.5, 1.0, 2.0, 9.875, 10.0, 60.0))
        current = [worlds.draw_status(random, pod, wall) for pod in pods]
        steps: list[Any] = []
        for index in range(len(pods)):
            steps.append(_status(wall, index, pods, current))
            steps.append({"op": "add", "wall": wall, "pod": index})
        for _ in range(random.randint(2, 7)):
            wall += random.choice((0.0, 0.125, 0.5, 1.0, 1.0, 2.0, 3.5, 12.0))
            index = random.randrange(len(pods))
            steps.append(_step(random, wall, index, pods, current))
        names = [
            f"probe-{kind}-{pod['metadata']['name']}-{name}" for pod in pods for name in "abcijk" for kind in KINDS
        ]
        return {
            "start": worlds.START,
            "pods": pods,
            "steps": steps,
            "pauses": {name: random.choice(PAUSES) for name in names},
            "runs": {
                name: [_run(random) for _ in range(random.choice((1, 2, 3)))] for name in names if maybe(random, 0.8)
            },
        }

    def answer(self, history: History, semantics: Semantics) -> Answers:
        steps = history["steps"]
        with (
            Virtual(steps[0]["wall"] if steps else history["start"]) as virtual,
            patch.object(worker_module, "threading", virtual),
            patch.object(manager_module, "threading", virtual),
        ):
            return _Loops(history, semantics, virtual).play()

    def told(self, answer: Answers) -> Answers:
        return answer


def _step(random: Random, wall: float, index: int, pods: list[Any], current: list[Any]) -> Json:
    kind = random.random()
    if kind < 0.3:
        current[index] = changed(random, pods[index], current[index], wall)
        return _status(wall, index, pods, current)
    if kind < 0.6:
        step = _status(wall, index, pods, current)
        return {**step, "op": "update", "status": step["status"] or {}}
    if kind < 0.7:
        return {"op": "pass", "wall": wall, "pod": index}
    return {"op": random.choice(("add", "add", "stop", "remove", "cleanup")), "wall": wall, "pod": index}


def _status(wall: float, index: int, pods: list[Any], current: list[Any]) -> Json:
    """The ids of a pod's containers are its own: what two pods write of one would be told in any order."""
    status, uid = current[index], pods[index]["metadata"]["uid"]
    step: Json = {"op": "status", "wall": wall, "pod": index, "status": status}
    if status is None:
        return step
    own = {key: [_with_own_id(c, uid) for c in status[key]] for key in STATUSES if key in status}
    return {**step, "status": {**status, **own}}


def _with_own_id(container: Json, uid: str) -> Json:
    if not container.get("containerID"):
        return container
    return {**container, "containerID": container["containerID"].replace("://", f"://{uid}")}


def _run(random: Random) -> Json:
    fault = random.choice((*[""] * 8, "timeout", "gone"))
    return {"seconds": random.choice(SECONDS), "code": random.choice((0, 0, 1)), "fault": fault}


def _with_commands(pod: Json) -> Json:
    """What its probes are is no matter: who asks is known."""
    spec = pod["spec"]
    with_them = {key: [_with_command(c) for c in spec[key]] for key in ("containers", "initContainers") if key in spec}
    return {**pod, "spec": {**spec, **with_them}}


def _with_command(container: Json) -> Json:
    probes = [key for key in PROBES if container.get(key) is not None]
    return {**container, **{key: {**container[key], "exec": {"command": ["true"]}} for key in probes}}


class _Loops(Scene):
    def __init__(self, history: History, semantics: Semantics, virtual: Virtual) -> None:
        self._virtual, self._history, self._semantics = virtual, history, semantics
        self._probed: Counter[str] = Counter()
        self._said: list[tuple[int, str, str]] = []
        self._began = virtual.monotonic
        super().__init__({**history, "pods": [_with_commands(pod) for pod in history["pods"]]}, semantics)

    def now(self) -> float:
        return self._virtual.monotonic

    def make_prober(self) -> Prober:
        fails = self._semantics.exec_timeout_fails
        return Prober(self._execute if fails else timeouts_are_no_failures(self._execute))

    def drawn(self) -> float:
        return float(self._history["pauses"].get(self._virtual.name, 0.0))

    def updated(self, kind: ProbeType, update: ProbeUpdate) -> None:
        text = f"{NAMES[kind]} update {update.pod_uid} {update.container_id} {WORDS[update.result]}"
        self._say(f"{NAMES[kind]}{update.container_id}", text)

    def play(self) -> Answers:
        answers = []
        for step in self.steps:
            self._virtual.advance(step["wall"])
            said = self.take(step)
            self._virtual.advance(step["wall"])
            answers.append([*said, *self._heard(), *self.seen()])
        self.manager.cleanup_pods(())
        self._virtual.advance(self._virtual.monotonic + A_WHILE_S)
        return [*answers, [*self._heard(), *self.seen()]]

    def _execute(self, container_id: str, command: Sequence[str], timeout_s: float) -> Completed:
        name = self._virtual.name
        self._say(name, f"{name} probes {container_id}")
        runs: Any = self._history["runs"].get(name)
        if not runs:
            return Completed(0, b"", b"")
        run = runs[self._probed[name] % len(runs)]
        self._probed[name] += 1
        self._virtual.sleep(run["seconds"])
        match run["fault"]:
            case "timeout":
                raise ExecTimeout(command, timeout_s)
            case "gone":
                raise RuntimeUnavailable("the runtime is gone")
        return Completed(run["code"], b"", b"")

    def _say(self, of: str, text: str) -> None:
        """`of`: who says it, so that what happens at one time in several threads is told in one order."""
        micros = round((self._virtual.monotonic - self._began) * 1e6)
        self._said.append((micros, of, f"{micros} {text}"))

    def _heard(self) -> list[str]:
        said = [text for _, _, text in sorted(self._said, key=lambda told: told[:2])]
        self._said.clear()
        return said
