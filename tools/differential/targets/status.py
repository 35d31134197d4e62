"""Pod statuses: made of what runtime and probes say, kept by the manager, written to an API server in memory.

generateAPIPodStatus with all it calls, the status manager with all its ways in, and its batches with faults of the API
server. The API server's copy of the pod and the one of the watch may be of different age. Left out, as the agent does
not model it: resources.
"""

from dataclasses import replace
from random import Random
from typing import Any

import msgspec

from agent.kubelet.pods.index import PodIndex
from agent.kubelet.status.conditions import (
    containers_ready_condition,
    initialized_condition,
    need_to_reconcile_readiness,
    ready_condition,
)
from agent.kubelet.status.generate import Host, Inputs, generate_status
from agent.kubelet.status.manager import StatusManager
from agent.kubelet.status.phase import pod_phase
from agent.kubelet.status.resize import (
    NO_RESIZES,
    backfilled,
    of_generation,
    with_pending,
    with_progress,
    without_pending,
    without_progress,
)
from agent.wire.model import ContainerWaiting, Pod, PodStatus
from agent.wire.pod import parse_pod
from agent.wire.semantics import Semantics
from agent.wire.status import parse_status, write_status
from kube.errors import KubeError, NotFound
from tools.differential import worlds
from tools.differential.runtimes import draw_runtime, runtime_pod
from tools.differential.target import Answers, History
from tools.differential.worlds import Json, maybe
from tools.fakes.api_patches import strategic_merge

OPS = (
    *["sync"] * 8,
    *["batch"] * 7,
    "readiness",
    "readiness",
    "startup",
    "terminate",
    "api",
    "watch",
    "watch",
    "forget",
    "any",
)
# In some histories only: the more kinds of steps there are, the less often meet those that something depends on.
RESIZES = (*OPS[:15], *["pending"] * 3, *["progress"] * 3, "no pending", "no progress", "backfill")
# What is said of a resize that is said anew, or was said before us, which four steps by chance hardly ever show.
ANEW = (("sync", "pending", "pending", "sync"), ("sync", "progress", "progress", "sync"), *[("backfill", "sync")] * 2)
# The status of a static pod is compared with its mirror's: once it was written and seen.
WRITTEN = ("sync", "batch", "watch", "batch")
# What nobody has seen the end of, in a pod of which the API server only knows that its containers wait.
ENDED = ("sync", "terminate", "batch")
# Another pod of its name, or none, comes between what is kept and what is written.
OTHER = (("sync", "api", "batch"), ("sync", "api", "watch", "readiness"), ("sync", "api", "watch", "startup"))
OTHER += (("sync", "batch", "api", "watch", "batch"), ("sync", "api", "watch", "sync"))
# What is kept of resizes goes with the pod.
FORGOTTEN = (
    ("sync", "pending", "progress", "forget", "sync"),
    ("pending", "api", "watch", "forget", "backfill", "sync"),
)
# A mirror that is to go is not deleted by whoever writes its status.
GONE = ("sync", "terminate", "batch")
FAULTS = (*[""] * 14, "get 404", "get 500", "patch 404", "patch 500", "delete 404", "delete 500")
ENDS = ("terminate", "terminate", "batch", "batch", "sync", "watch")
STATIC = {"kubernetes.io/config.source": "file"}
MIRRORED = {**STATIC, "kubernetes.io/config.mirror": "0123"}
ERRORS = ("", "", "Error")
WHY = (("CrashLoopBackOff", "back-off 10s"), ("ErrImagePull", ""), ("RunContainerError", "no such command"))


class StatusTarget:
    name = "status"

    def draw(self, random: Random) -> History:
        pod = worlds.draw_pod(random)
        if maybe(random, 0.1):
            pod["spec"]["hostNetwork"] = True
        if maybe(random, 0.2):
            pod["spec"]["activeDeadlineSeconds"] = random.choice((1, 20, 50, 51, 90))
        pod["status"] = self._status(random, pod, worlds.START) if maybe(random, 0.5) else {"phase": "Pending"}
        static, ending = dict[str, Any](), False
        if maybe(random, 0.2):
            mirror = {**pod, "metadata": {**pod["metadata"], "uid": "m", "annotations": MIRRORED}}
            ending = maybe(random, 0.3)
            if ending:
                mirror["metadata"]["deletionTimestamp"] = worlds.text_time(worlds.START)
                mirror["status"] = {**mirror["status"], "phase": "Failed"}
            static = {"mirror": mirror, "seen": maybe(random, 0.7)}
            meta = {key: value for key, value in pod["metadata"].items() if not key.startswith("deletion")}
            pod = {**pod, "metadata": {**meta, "annotations": STATIC}, "status": {"phase": "Pending"}}
        wall, steps, runtime = worlds.START, [], draw_runtime(random, pod, worlds.START)
        ops = ENDS if ending else RESIZES if maybe(random, 0.15) else OPS
        plan = random.choice(ANEW) if not ending and maybe(random, 0.08) else ()
        if static and maybe(random, 0.4 if ending else 0.2):
            plan = GONE if ending else WRITTEN
        if not static and not plan and maybe(random, 0.08):
            plan = random.choice((ENDED, *OTHER, *FORGOTTEN))
        if plan is ENDED:
            self._never_ran(random, pod)
        for number in range(len(plan) or random.choice((1, 2, 3, 4))):
            wall += random.choice((0.0, 0.5, 1.0, 20.25))
            first = number == 0 and maybe(random, 0.9)
            step: Json = {"op": plan[number] if plan else "sync" if first else random.choice(ops), "wall": wall}
            if step["op"] == "sync" and (number == 0 or maybe(random, 0.5)):
                runtime = draw_runtime(random, pod, wall)
            step |= self._more(random, step, static.get("mirror", pod), runtime)
            if maybe(random, 0.02):
                self._say_much(random, step)
            if plan is GONE:
                step |= {"sync": {"terminal": True}, "batch": {"couldRun": False}}.get(step["op"], {})
            steps.append(step)
        return {"pod": pod, "steps": steps, **static}

    def _status(self, random: Random, pod: Json, wall: float) -> Json:
        status = worlds.draw_status(random, pod, wall)
        for key in ("containerStatuses", "initContainerStatuses"):
            if key in status and maybe(random, 0.9):  # in the order that a kubelet writes
                names = [c["name"] for c in pod["spec"].get("initContainers", ())]
                status[key].sort(key=lambda s: names.index(s["name"]) if s["name"] in names else 9)
        if maybe(random, 0.3):
            status["startTime"] = worlds.odd_time(random, worlds.text_time(worlds.START - 50))
        if maybe(random, 0.2):
            status |= {"reason": "Evicted", "message": random.choice(("", "The node was low on memory"))}
        if maybe(random, 0.2):
            status["observedGeneration"] = random.randint(1, 4)
        return status

    def _never_ran(self, random: Random, pod: Json) -> None:
        """No app container has begun; of init containers the API server knows some."""
        waits = {"state": {"waiting": {}}, "lastState": {}}
        status = pod["status"] = self._status(random, pod, worlds.START)
        status["containerStatuses"] = [{**s, **waits} for s in status.get("containerStatuses", ())]
        inits = status.get("initContainerStatuses", [])
        del inits[random.randint(0, len(inits)) :]

    def _say_much(self, random: Random, step: Json) -> None:
        """Words of containers that have ended: all of a pod's together have 12 KiB."""
        for container in step.get("runtime", {"containers": ()})["containers"]:
            container["message"] = "x" * random.choice((0, 1, 1365, 1366, 2048, 4095, 4096, 4097, 12288, 12289))

    def _more(self, random: Random, step: Json, pod: Json, runtime: Json) -> Json:
        spec = pod["spec"]
        every = ("containers", "initContainers", "ephemeralContainers")
        names = [c["name"] for key in every for c in spec.get(key, ())]
        match step["op"]:
            case "sync":
                return {
                    "runtime": runtime,
                    "errors": {n: random.choice(WHY) for n in names if maybe(random, 0.15)},
                    "probes": {n: (maybe(random, 0.8), maybe(random, 0.6)) for n in names if maybe(random, 0.8)},
                    "terminal": maybe(random, 0.1),
                    "host": random.choice((*["192.168.0.1"] * 4, "fd00::9", "")),
                }
            case "readiness" | "startup":
                container = random.choice(runtime["containers"] or [{"id": "test://z1"}])
                return {"id": container["id"], "value": maybe(random, 0.5)}
            case "api":
                return {"pod": self._changed(random, pod, step["wall"])}
            case "any":  # of statuses that no runtime leads to: some are missing, some say nothing
                drawn = {"terminal": maybe(random, 0.2), "initialized": maybe(random, 0.6)}
                return {**drawn, "status": worlds.draw_status(random, pod, step["wall"])}
            case "batch":
                return {
                    "all": maybe(random, 0.5),
                    "couldRun": maybe(random, 0.4),
                    "fault": random.choice(FAULTS),
                }
            case "pending" | "progress":
                reasons = (
                    ("Infeasible", "Infeasible", "Deferred", "OutOfcpu", "") if step["op"] == "pending" else ERRORS
                )
                return {
                    "reason": random.choice(reasons),
                    "message": random.choice(("", "so", "no room")),
                    "generation": random.randint(1, 3),
                }
        return {}

    def _changed(self, random: Random, pod: Json, wall: float) -> Json | None:
        """What somebody else makes of the pod: another one of its name, one on its end, another status, or none."""
        if maybe(random, 0.1):
            return None
        meta = dict(pod["metadata"])
        if maybe(random, 0.1):
            meta["uid"] = "v"
        if maybe(random, 0.6):
            meta |= {"deletionTimestamp": worlds.text_time(wall), "deletionGracePeriodSeconds": 30}
        status = self._status(random, pod, wall) if maybe(random, 0.6) else pod["status"]
        return {**pod, "metadata": meta, "status": status}

    def answer(self, history: History, semantics: Semantics) -> Answers:
        scene = Scene(history, semantics)
        return [scene.take(step) for step in history["steps"]]

    def told(self, answer: Answers) -> Answers:
        """Not the time of DisruptionTarget among the kept ones: upstream's merge, by mistake, changes it in there."""
        for step in answer if isinstance(answer, list) else ():
            for condition in step.get("kept", {}).get("conditions", ()):
                if condition["type"] == "DisruptionTarget":
                    condition["lastTransitionTime"] = None
        return answer


def _as_created(pod: Json | None) -> Json | None:
    """With what the API server puts into every pod."""
    return pod and {**pod, "status": {**pod.get("status", {}), "qosClass": "BestEffort"}}


def _parsed(pod: Json | None) -> Pod | None:
    return None if pod is None else parse_pod(msgspec.json.encode(pod))


class Scene:
    """One pod, in the watch and in the API server; the client and the watch of the manager."""

    def __init__(self, history: History, semantics: Semantics) -> None:
        self.semantics = semantics
        self.uid: str = history["pod"]["metadata"]["uid"]
        self.watched: Pod | None = _parsed(_as_created(history["pod"]))
        self.static = history.get("mirror") is not None
        self.api: Json | None = _as_created(history["mirror" if self.static else "pod"])
        self.index = PodIndex([self.watched] if self.watched is not None and self.static else [])
        self.mirror: Pod | None = None
        if self.static and history["seen"]:
            self._see_mirror()
        self.step: Json = {}
        self.requests: list[Any] = []
        self.version = 0
        self.resizes = NO_RESIZES
        self.manager = StatusManager(
            self,
            self,
            lambda _uid: bool(self.step.get("couldRun")),
            semantics,
            wall=lambda: self.step.get("wall", 0.0),
            monotonic=lambda: 0.0,
        )

    def take(self, step: Json) -> Json:
        self.step, self.requests = step, []
        known = self.manager.versioned_status(self.uid) is not None
        said = self._take(step)
        if self.requests:
            said["requests"] = self.requests
        kept = self.manager.versioned_status(self.uid)
        if known and kept is None:
            self.resizes = NO_RESIZES  # they go with the status
        version = 0 if kept is None else kept.version
        if version != self.version and kept is not None:
            said |= {"version": version, "finished": kept.finished, "kept": write_status(kept.status)}
        self.version = version
        return said

    def _take(self, step: Json) -> Json:
        match step["op"]:
            case "sync" if self.watched is not None:
                return {"changed": self.manager.set_pod_status(self.watched, self._generated(self.watched))}
            case "readiness":
                self.manager.set_container_readiness(self.uid, step["id"], step["value"])
            case "startup":
                self.manager.set_container_startup(self.uid, step["id"], step["value"])
            case "terminate" if self.watched is not None:
                self.manager.terminate_pod(self.watched)
            case "forget":
                self.manager.remove_orphaned(frozenset())
            case "api":
                self.api = _as_created(step["pod"])
            case "watch" if self.static:
                self._see_mirror()
            case "watch":
                self.watched = _parsed(self.api)
                if self.watched is not None:
                    return {"reconcile": need_to_reconcile_readiness(self.watched, self.semantics)}
            case "pending":
                made = with_pending(self.resizes, step["reason"], step["message"], step["generation"], step["wall"])
                self.resizes, changed = made
                return {"changed": changed}
            case "progress":
                self.resizes, generation, changed = with_progress(
                    self.resizes, step["reason"], step["message"], step["generation"], step["wall"]
                )
                return {"changed": changed, "generation": generation}
            case "no pending":
                self.resizes = without_pending(self.resizes)
            case "no progress":
                self.resizes, generation = without_progress(self.resizes)
                return {"changed": generation is not None, "generation": generation or 0}
            case "backfill" if self.watched is not None:
                self.resizes = backfilled(self.resizes, self.watched.status.conditions, step["wall"])
            case "any" if self.watched is not None:
                return self._of_any(self.watched)
            case "batch":
                return {"tried": self.manager.sync_batch(everything=step.get("all", False))}
        return {}

    def _of_any(self, pod: Pod) -> Json:
        """Phase and conditions by statuses that are anyhow."""
        said, old = parse_status(msgspec.json.encode(self.step["status"])), pod.status
        every = (*(said.container_statuses or ()), *(said.init_container_statuses or ()))
        ended, begun = self.step["terminal"], self.step["initialized"]
        phase = pod_phase(pod, every, pod_is_terminal=ended, initialized=begun, semantics=self.semantics)
        made = (
            containers_ready_condition(pod, old, every or None, said.phase),
            ready_condition(pod, old, said.conditions, every or None, said.phase),
            initialized_condition(pod, old, every or None, said.phase, self.semantics),
        )
        return {"phase": str(phase), "conditions": write_status(PodStatus(conditions=made))["conditions"]}

    def _generated(self, pod: Pod) -> PodStatus:
        self.resizes = NO_RESIZES if self.step["terminal"] else of_generation(self.resizes, pod.generation)
        inputs = Inputs(
            pod=pod,
            runtime=runtime_pod(pod.uid, self.step["runtime"]),
            semantics=self.semantics,
            old=self.manager.pod_status(pod.uid),
            host=Host(self.step["host"]),
            start_errors={name: ContainerWaiting(*why) for name, why in self.step["errors"].items()},
            pod_is_terminal=self.step["terminal"],
            wall=self.step["wall"],
            resizes=self.resizes,
        )
        return generate_status(inputs, self._filled)

    def _filled(self, _pod: Pod, status: PodStatus) -> PodStatus:
        said = self.step["probes"]

        def filled(statuses: Any) -> Any:
            return statuses and tuple(
                replace(s, started=said[s.name][0], ready=said[s.name][1]) if s.name in said else s for s in statuses
            )

        return replace(
            status,
            container_statuses=filled(status.container_statuses),
            init_container_statuses=filled(status.init_container_statuses),
        )

    # --- the manager's view of the watch and of the API server ---

    def pod_by_uid(self, uid: str) -> Pod | None:
        return self.index.pods.get(uid) if self.static else self.watched

    def mirror_of(self, pod: Pod) -> Pod | None:
        return self.index.mirror_of(pod)

    def resolved_uid(self, uid: str) -> str:
        return self.index.resolved_uid(uid)

    def status_uid(self, uid: str) -> str | None:
        return self.index.status_uid(uid)

    def _see_mirror(self) -> None:
        if self.mirror is not None:
            self.index.remove(self.mirror)
        self.mirror = _parsed(self.api)
        if self.mirror is not None:
            self.index.put(self.mirror)

    def get(self, _path: str) -> bytes:
        self.requests.append("get")
        return msgspec.json.encode(self._answered("get"))

    def patch(self, _path: str, body: bytes, *, content_type: str) -> bytes:  # noqa: ARG002 - the client's way
        self.requests.append(msgspec.json.decode(body))
        self.api = strategic_merge(self._answered("patch"), self.requests[-1])
        return msgspec.json.encode(self.api)

    def delete(self, _path: str, body: bytes = b"") -> bytes:
        self.requests.append(msgspec.json.decode(body))
        self._answered("delete")
        self.api = None
        return b""

    def _answered(self, request: str) -> Json:
        fault = self.step.get("fault")
        if self.api is None or fault == f"{request} 404":
            raise NotFound(path="/", status=404)
        if fault == f"{request} 500":
            raise KubeError(path="/", status=500)
        return self.api
