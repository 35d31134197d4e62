"""Which pods a node with little room takes, and how far each is: what the configuration makes of the API server's pods,
admission, and the stages of the pod workers. A container starts at once and ends when the history says so."""

from random import Random
from typing import Any

import msgspec

from agent.kubelet.pods.source import PodTable
from agent.kubelet.pods.state import Stage
from agent.kubelet.pods.sync import PodLoop
from agent.kubelet.pods.work_queue import WorkQueue
from agent.kubelet.status.conditions import is_terminal
from agent.kubelet.status.generate import Host
from agent.kubelet.status.manager import StatusManager
from agent.wire.model import Node, NodeStatus, PodPhase
from agent.wire.pod import PodObject
from agent.wire.semantics import Semantics
from tools.differential import worlds
from tools.differential.target import Answers, History
from tools.differential.worlds import Json, maybe, text_time
from tools.fakes.hooks import FakeHooks
from tools.fakes.prober import FakeProber
from tools.fakes.runtime import FakeRuntime
from tools.kit.clock import Clock

UIDS = ("a", "b", "c")
OPS = (*["delete"] * 3, *["label"] * 2, *["fail"] * 2, *["echo"] * 3, *["remove"] * 2, *["sync"] * 2, *["ended"] * 4)
TURNS = 6
"""Of the loop, after which nothing is left to do."""


class IntakeTarget:
    name = "intake"

    def draw(self, random: Random) -> History:
        """Uids are put once each."""
        left, there, steps = list(UIDS), list[str](), list[Json]()
        for _ in range(random.randint(3, 14)):
            if left and (not there or maybe(random, 0.35)):
                uid = left.pop(0)
                there.append(uid)
                steps.append({"op": "put", "uid": uid, "deleted": maybe(random, 0.2), "failed": maybe(random, 0.1)})
            elif maybe(random, 0.2):
                steps.append({"op": "house", "uid": ""})
            else:
                steps.append({"op": random.choice(OPS), "uid": random.choice(there)})
        return {"capacity": random.choice((1, 1, 2)), "steps": steps}

    def answer(self, history: History, semantics: Semantics) -> Answers:
        scene = _Scene(history["capacity"], semantics)
        return [scene.take(step) for step in history["steps"]]

    def told(self, answer: Answers) -> Answers:
        return answer


class _Scene:
    """An API server's pods, and a loop beside them."""

    def __init__(self, capacity: int, semantics: Semantics) -> None:
        self._api: dict[str, Json] = {}
        self._made = 0
        self._node = Node(name="n", status=NodeStatus(allocatable={"pods": str(capacity)}))
        clock = Clock(worlds.START)
        self._inbox = WorkQueue()
        self._table = PodTable(self._inbox.put, semantics)
        self._runtime = FakeRuntime(clock)
        client: Any = None  # nothing is written
        self._statuses = StatusManager(
            client, self._table, lambda uid: self._loop.could_run(uid), semantics, wall=clock
        )
        self._loop = PodLoop(
            self._inbox,
            self._table,
            self._runtime,
            self._statuses,
            FakeProber(),
            FakeHooks(),
            liveness=lambda _id: None,
            startup=lambda _id: None,
            source_synced=lambda: True,
            host=Host("192.168.0.1"),
            nodes=self,
            semantics=semantics,
            wall=clock,
            monotonic=clock,
            random=lambda: 0.0,
        )
        self._loop._next_housekeeping = float("inf")  # where the history says so

    def known_node(self) -> Node:
        return self._node

    read_node = known_node

    def take(self, step: Json) -> Json:
        op, uid = step["op"], step["uid"]
        states, pod = self._loop._states, self._api.get(uid)
        match op:
            case "put":
                self._put(uid, step)
            case "house":
                self._loop._housekeeper.turn()
            case "ended":
                if uid in states and states[uid].stage is Stage.TERMINATING:
                    self._runtime.end(uid, 137)
                    self._inbox.put(uid)
            case _ if pod is None:
                pass
            case "delete":
                pod["metadata"] |= {"deletionTimestamp": text_time(1000), "deletionGracePeriodSeconds": 30}
            case "label":
                self._echo(uid)
                self._set()
                labels = pod["metadata"].get("labels", {})
                pod["metadata"]["labels"] = {"n": labels.get("n", "") + "+"}
            case "fail":
                pod["status"]["phase"] = "Failed"
            case "echo":
                self._echo(uid)
            case "remove":
                del self._api[uid]
            case "sync":
                if uid in states and not states[uid].refused:
                    self._inbox.put(uid)
            case _:
                raise ValueError(op)
        self._set()
        return self._told()

    def _put(self, uid: str, step: Json) -> None:
        self._made += 1
        meta: Json = {"uid": uid, "name": uid, "namespace": "default", "creationTimestamp": text_time(self._made)}
        if step.get("deleted"):
            meta |= {"deletionTimestamp": text_time(1000), "deletionGracePeriodSeconds": 30}
        phase = "Failed" if step.get("failed") else "Pending"
        self._api[uid] = {"metadata": meta, "spec": {"containers": [{"name": uid}]}, "status": {"phase": phase}}

    def _echo(self, uid: str) -> None:
        """The API server takes over what the status manager has."""
        kept = self._statuses.pod_status(uid)
        if kept is not None:
            self._api[uid]["status"]["phase"] = "Failed" if is_terminal(kept.phase) else "Running"

    def _set(self) -> None:
        self._table.replace(
            [msgspec.json.decode(msgspec.json.encode(pod), type=PodObject) for pod in self._api.values()]
        )
        for _ in range(TURNS):
            self._loop.sync_pods(self._inbox.take(0.0))

    def _told(self) -> Json:
        told: Json = {}
        for uid in self._api:
            state, kept = self._loop._states.get(uid), self._statuses.versioned_status(uid)
            said: Json = {"stage": None if state is None else state.stage.value}
            said["finished"] = kept is not None and kept.finished
            if state is not None and state.refused and kept is not None and kept.status.phase is PodPhase.FAILED:
                said |= {"stage": "refused", "message": kept.status.message}
            told[uid] = said
        ending = [uid for uid, state in self._loop._states.items() if state.stage is Stage.TERMINATING]
        return told | {uid: "ends" for uid in ending if uid not in self._api}
