"""What the pod workers do for each pod, in which order, and when they try again: rows PW6, PW8-PW13, PW16-PW23.

Pods are updated, deleted, removed and refused; containers exit or do not start; the runtime fails, hangs or has no
network; static pods share a name; the agent is started again. A pod has one container, which runs until the history
ends it. An update comes without a type here, so not the calls of the syncer are told but what they do.
"""

import math
from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Any, Self
from unittest.mock import patch

import msgspec

from agent.kernel.clocks import Clocks
from agent.kubelet.events.event import Event
from agent.kubelet.pods import workers as workers_module
from agent.kubelet.pods.interfaces import LoopParts
from agent.kubelet.pods.source import PodTable
from agent.kubelet.pods.state import PodState, Stage
from agent.kubelet.pods.sync import PodLoop
from agent.kubelet.pods.work_queue import WorkQueue
from agent.kubelet.status.generate import Host
from agent.wire.model import Node
from agent.wire.pod import ANNOTATION_CONFIG_SOURCE, PodObject, parse_pod
from agent.wire.semantics import Semantics
from tools.differential import worlds
from tools.differential.pod_world import HistoryProbes, HistoryStatuses, World
from tools.differential.target import Answers, History
from tools.differential.virtual import Virtual
from tools.differential.worlds import Json, maybe, text_time
from tools.fakes.hooks import FakeHooks

GRACES = (1, 2, 7, 31, 61)
STATIC = "static"
OPS = (
    *["delete"] * 3,
    *["remove", "echo", "label", "sync"] * 2,
    "fail",
    *["exit"] * 6,
    *["blind", "broken", "slow", "stuck"] * 2,
)
FAULTS = ("blind", "broken", "slow", "stuck")
WAITS_S = (0.5, 1.0, 3.0, 12.5, 20.0, 75.0, 100.0)


class WorkersTarget:
    name = "workers"

    def draw(self, random: Random) -> History:
        """Uids of the API server are put once each; static pods of one name have two, which may come back."""
        uids = ("a", "b", "c") if maybe(random, 0.6) else ("a", "s", "t")
        left, there, steps, on = list(uids), list[str](), list[Json](), set[tuple[str, str]]()
        pods: dict[str, Json] = {}
        capacity = 9 if "s" in uids else random.choice((1, 2, 9))
        for _ in range(random.randint(3, 20)):
            if left and (not there or maybe(random, 0.3)):
                uid = left[0] if there else left[-1] if maybe(random, 0.5) else left[0]
                left.remove(uid)
                there.append(uid)
                pods[uid] = _pod(random, uid, len(steps), pods.get(uid))
                steps.append({"op": "put", "uid": uid, "pod": pods[uid]})
            elif maybe(random, 0.3):
                steps.append({"op": "advance", "uid": "", "seconds": random.choice(WAITS_S)})
            elif maybe(random, 0.2):
                steps.append({"op": random.choice(("house", "house", "restart")), "uid": ""})
            elif maybe(random, 0.1):
                steps.append({"op": "network", "uid": "", "on": _turned(on, "network", "")})
            else:
                op, uid = random.choice(OPS), random.choice(there)
                if op == "fail" and ("slow", uid) in on:
                    op = "label"
                step: Json = {"op": op, "uid": uid}
                if op in FAULTS:
                    step["on"] = _turned(on, op, uid)
                elif op == "delete":
                    step["grace"] = random.choice(GRACES)
                elif op == "exit":
                    step |= {"code": random.choice((0, 1)), "quiet": maybe(random, 0.2)}
                elif op == "remove" and uid in ("s", "t") and pods[uid]["spec"]["restartPolicy"] == "Always":
                    left.append(uid)
                steps.append(step)
        return {"capacity": capacity, "random": random.choice((0.0, 0.5, 1.0)), "steps": steps}

    def answer(self, history: History, semantics: Semantics) -> Answers:
        world = World(history)
        with ExitStack() as stack:
            scene = stack.enter_context(_Scene(world, semantics))
            scene.begin()
            answers = []
            for step in history["steps"]:
                if step["op"] == "restart":
                    stack.close()
                    scene = stack.enter_context(_Scene(world, semantics))
                    scene.begin()
                else:
                    scene.take(step)
                answers.append(scene.told())
            return answers

    def told(self, answer: Answers) -> Answers:
        return answer


def _turned(on: set[tuple[str, str]], what: str, uid: str) -> bool:
    """On where it was off. The network is there at first."""
    on ^= {(what, uid)}
    return ((what, uid) in on) != (what == "network")


def _pod(random: Random, uid: str, number: int, before: Json | None) -> Json:
    """A file that comes back may give its pod another grace period. One whose pod was over is not drawn: a kubelet
    takes the status of the first for the second's."""
    if before is not None:
        spec = {**before["spec"], "terminationGracePeriodSeconds": random.choice(GRACES)}
        return {**before, "spec": spec}
    static = uid in ("s", "t")
    meta: Json = {"uid": uid, "name": STATIC if static else uid, "namespace": "default"}
    meta["creationTimestamp"] = text_time(number + 1)
    spec: Json = {"containers": [{"name": "c"}], "restartPolicy": random.choice(worlds.POLICIES)}
    spec["terminationGracePeriodSeconds"] = random.choice(GRACES)
    phase = "Pending"
    if maybe(random, 0.3):
        spec["hostNetwork"] = True
    if static:
        meta["annotations"] = {ANNOTATION_CONFIG_SOURCE: "file"}
    else:
        if maybe(random, 0.1):
            meta |= {"deletionTimestamp": text_time(1000), "deletionGracePeriodSeconds": random.choice(GRACES)}
        if maybe(random, 0.1):
            phase = "Failed"
    return {"metadata": meta, "spec": spec, "status": {"phase": phase}}


class _Threads:
    """What `threading` is to the workers: one that waits for nothing is done at once, which is much faster."""

    Lock = Virtual.Lock

    def __init__(self, virtual: Virtual, waits: Callable[[str], bool]) -> None:
        self._virtual, self._waits = virtual, waits

    def Thread(self, *, target: Callable[[str], None], args: tuple[str], name: str, daemon: bool) -> Any:  # noqa: N802
        if self._waits(args[0]):
            return self._virtual.Thread(target=lambda: target(*args), name=name, daemon=daemon)
        return _AtOnce(lambda: target(*args))


class _AtOnce:
    def __init__(self, start: Callable[[], None]) -> None:
        self.start = start


class _Scene:
    """One agent. A context: it ends with it."""

    def __init__(self, world: World, semantics: Semantics) -> None:
        self.world = world
        self._stack = ExitStack()
        self._virtual = Virtual(world.clock.time)
        self._slow: dict[str, Any] = {}
        self._housed: frozenset[str] | None = None
        self._work_queue = WorkQueue()
        self._table = PodTable(self._work_queue.put, semantics)
        self._statuses = HistoryStatuses(self._table, semantics, world, lambda: self.loop)
        self._probes = HistoryProbes(world.tell)
        world.runtime.wait, world.runtime.is_orphan, world.runtime.asked = self._wait, self._is_orphan, set()
        world.runtime.waits_for_end = self._waits_for_end
        self.loop = PodLoop(
            self._work_queue,
            LoopParts(
                pods=self._table,
                runtime=world.runtime,
                statuses=self._statuses,
                prober=self._probes,
                hooks=FakeHooks(),
                liveness=lambda _id: None,
                startup=lambda _id: None,
                source_synced=lambda: True,
                nodes=self,
                network=lambda: "container runtime network not ready" if world.no_network else "",
                record=self._record,
            ),
            host=Host("192.168.0.1"),
            semantics=semantics,
            outlive=True,
            clocks=Clocks(wall=world.clock, monotonic=world.clock, random=lambda: world.random),
        )
        self.loop._next_housekeeping = math.inf  # where the history says so

    def __enter__(self) -> Self:
        self._stack.enter_context(self._virtual)
        threads = _Threads(self._virtual, lambda uid: ("slow", uid) in self.world.runtime.faults)
        self._stack.enter_context(patch.object(workers_module, "threading", threads))
        return self

    def __exit__(self, *_raised: object) -> None:
        self._stack.close()

    def known_node(self) -> Node:
        return self.world.node

    read_node = known_node

    def _wait(self, uid: str) -> None:
        while ("slow", uid) in self.world.runtime.faults:
            self._slow[uid] = self._virtual.Event()
            self._slow[uid].wait()

    def _is_orphan(self, uid: str) -> bool:
        state = self.loop._states.get(uid)
        return state is None or state.refused

    def _waits_for_end(self, uid: str) -> bool:
        """Whether a kubelet's KillPod waits. A shorter grace ends that wait; the next attempt looks at the pod."""
        state = self.loop._states.get(uid)
        if state is None or state.ends.all is None or state.ends.all.grace_s is None:
            return False
        return self.world.runtime.is_ending(uid) and state.ends.all.grace_s <= state.ends.grace_s

    def _record(self, event: Event) -> None:
        if event.reason == "NetworkNotReady":
            self.world.tell(event.about.uid, event.reason, event.message)

    def begin(self) -> None:
        """It sees all pods, then what is left of others."""
        self._set()
        self._house()

    def take(self, step: Json) -> None:
        op, uid, world = step["op"], step["uid"], self.world
        state, pod = self.loop._states.get(uid), world.config.get(uid)
        match op:
            case "put":
                for other, known in list(world.config.items()):
                    if _is_static(known) and known["metadata"]["name"] == step["pod"]["metadata"]["name"]:
                        self._remove(other)
                world.config[uid] = msgspec.json.decode(msgspec.json.encode(step["pod"]))
            case "house":
                self._house()
            case "advance":
                self._advance(step["seconds"])
            case "network":
                world.no_network = not step["on"]
            case "blind" | "broken" | "slow" | "stuck":
                (world.runtime.faults.add if step["on"] and pod else world.runtime.faults.discard)((op, uid))
                if op == "slow" and ("slow", uid) not in world.runtime.faults and uid in self._slow:
                    self._slow.pop(uid).set()
            case "exit":
                ending = world.runtime.is_ending(uid)
                world.runtime.exit(uid, step["code"])
                if ending or not step["quiet"]:  # whoever ends it knows
                    self._work_queue.put(uid)
            case "sync":
                if state is not None and not state.refused and pod is not None:
                    self._work_queue.put(uid)
            case "delete" | "fail" | "echo" | "label" | "remove":
                if pod is not None and (not _is_static(pod) or op in ("label", "remove")):
                    self._change(pod, step)
            case _:
                raise ValueError(op)
        self._set()

    def _change(self, pod: Json, step: Json) -> None:
        meta, status = pod["metadata"], pod["status"]
        match step["op"]:
            case "delete":
                grace = min(step["grace"], meta.get("deletionGracePeriodSeconds", step["grace"]))
                meta |= {"deletionTimestamp": text_time(1000), "deletionGracePeriodSeconds": grace}
            case "fail":
                if "deletionTimestamp" not in meta:
                    status["phase"] = "Failed"
            case "echo":
                kept = self._statuses.pod_status(meta["uid"])
                if kept is not None:
                    status["phase"] = kept.phase.value
            case "label":
                kept = self._statuses.pod_status(meta["uid"])
                if kept is not None and not _is_static(pod):
                    status["phase"] = kept.phase.value
                    self._set()
                meta["labels"] = {"n": meta.get("labels", {}).get("n", "") + "+"}
            case "remove":
                self._remove(meta["uid"])

    def _remove(self, uid: str) -> None:
        """A pod that is gone ends without faults: where it does not, only housekeeping tries again upstream."""
        del self.world.config[uid]
        self.world.runtime.faults -= {("blind", uid), ("stuck", uid)}

    def _set(self) -> None:
        pods = self.world.config.values()
        self._table.replace_static([parse_pod(msgspec.json.encode(pod)) for pod in pods if _is_static(pod)])
        self._settle()
        api = [pod for pod in pods if not _is_static(pod)]
        self._table.replace([msgspec.json.decode(msgspec.json.encode(pod), type=PodObject) for pod in api])
        self._settle()

    def _settle(self) -> None:
        now = self.world.clock.time
        self._virtual.advance(now)
        while self.loop._due.first(math.inf) <= now or self._work_queue._uids:
            self.loop.sync_pods(self._work_queue.take(0.0))
            self._virtual.advance(now)

    def _house(self) -> None:
        self.loop._housekeeper.turn()
        self._housed = self._probes.desired
        self._settle()

    def _advance(self, seconds: float) -> None:
        until = self.world.clock.time + seconds
        self._settle()
        while (due := self.loop._due.first(math.inf)) <= until:
            self.world.clock.time = max(due, self.world.clock.time)
            self._settle()
        self.world.clock.time = until
        self._settle()

    def told(self) -> Json:
        world = self.world
        pods = {uid: self._told_of(uid) for uid in world.config}
        for uid, state in self.loop._states.items():
            if uid not in world.config and state.ending and state.stage is not Stage.TERMINATED:
                pods[uid] = {"does": world.does.get(uid), "stage": "ends"}
        pods |= {uid: {"does": does, "stage": None} for uid, does in world.does.items() if uid not in pods}
        answer: Json = {"pods": pods, "mirrorsEnd": {}}
        if not any(_is_static(pod) for pod in world.config.values()):
            answer["mirrorsEnd"] = {STATIC: self.loop.ends_static("default", STATIC)}
        if self._housed is not None:
            answer["probed"] = sorted(self._housed)
        world.does, self._housed = {}, None
        return answer

    def _told_of(self, uid: str) -> Json:
        state = self.loop._states.get(uid)
        told: Json = {"does": self.world.does.get(uid), "stage": None}
        if state is None or state.refused:
            return told
        over, kept = state.stage is Stage.TERMINATED, self._statuses.versioned_status(uid)
        told["stage"] = "terminating" if state.ending and state.stage is Stage.SYNCING else state.stage.value
        told |= {
            "terminationRequested": state.ending or state.stage is not Stage.SYNCING,
            "knownTerminated": over,
            "couldRun": self.loop.could_run(uid),
            "runtimeRemoved": not self.loop.could_run(uid),
            "finished": kept is not None and kept.finished,
        }
        due = self.loop._due._at.get(uid)
        if due is not None and not over and uid not in self._slow and self._tries_again(state):
            told["wait"] = int((due - self.world.clock.time) * 1000)
        return told

    def _tries_again(self, state: PodState) -> bool:
        """And does not wait for the end of a container."""
        if state.stage is Stage.SYNCING:
            return True
        return not state.announced and not self.world.runtime.is_ending(state.pod.uid)


def _is_static(pod: Json) -> bool:
    return ANNOTATION_CONFIG_SOURCE in pod["metadata"].get("annotations", {})
