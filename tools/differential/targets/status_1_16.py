"""The status manager of kubelet 1.16, its conditions and its phase, and the agent's with `compat: v1.16`.

Statuses are drawn, and not made of what a runtime says. The API server's copy of the pod and the one of the watch may
be of different age. Batches are those of each ten seconds: what comes between is row CM13. Draws what rows CM15-CM20
and CM29-CM33 are about.
"""

from dataclasses import replace
from random import Random
from typing import Any

import msgspec

from agent.kubelet.status.conditions import containers_ready_condition, initialized_condition, ready_condition
from agent.kubelet.status.phase import pod_phase
from agent.wire.model import PodStatus
from agent.wire.semantics import Semantics
from agent.wire.status import parse_status, write_status
from tools.differential import worlds
from tools.differential.target import Answers, History
from tools.differential.targets.status import FAULTS, MIRRORED, STATIC, Scene
from tools.differential.worlds import Json, maybe
from tools.differential.worlds_1_16 import pod_of_1_16, status_of_1_16

OPS = (*["set"] * 8, *["batch"] * 7, *["readiness"] * 3, *["startup"] * 2, *["terminate"] * 2, *["api"] * 2)
OPS += ("watch", "watch", "forget", "any", "any")


class OldStatusTarget:
    name = "status-1.16"

    def draw(self, random: Random) -> History:
        pod = pod_of_1_16(worlds.draw_pod(random))
        if maybe(random, 0.2):
            pod["spec"]["readinessGates"] = [{"conditionType": "gate/x"}]
        pod["status"] = _status(random, pod, worlds.START) if maybe(random, 0.5) else {"phase": "Pending"}
        static = dict[str, Any]()
        if maybe(random, 0.2):
            mirror = {**pod, "metadata": {**pod["metadata"], "uid": "m", "annotations": MIRRORED}}
            static = {"mirror": mirror, "seen": maybe(random, 0.7)}
            meta = {key: value for key, value in pod["metadata"].items() if not key.startswith("deletion")}
            pod = {**pod, "metadata": {**meta, "annotations": STATIC}, "status": {"phase": "Pending"}}
        wall, steps = worlds.START, list[Json]()
        current = _status(random, pod, wall)
        for number in range(random.choice((1, 2, 3, 4, 5))):
            wall += random.choice((0.0, 0.5, 1.0, 20.25))
            step: Json = {"op": "set" if number == 0 and maybe(random, 0.9) else random.choice(OPS), "wall": wall}
            if step["op"] in ("set", "any"):
                if maybe(random, 0.6):
                    current = _status(random, pod, wall)
                elif maybe(random, 0.5):  # one condition has gone
                    current = {**current, "conditions": current.get("conditions", [])[1:]}
                step["status"] = current
            steps.append(step | _more(random, step, static.get("mirror", pod), current))
        return {"pod": pod, "steps": steps, **static}

    def answer(self, history: History, semantics: Semantics) -> Answers:
        scene = OldScene(history, semantics)
        return [scene.take(step) for step in history["steps"]]

    def told(self, answer: Answers) -> Answers:
        """Not hostIPs, which 1.16 does not know and its API server drops (row CM40)."""
        return without_host_ips(answer)


def without_host_ips(answer: Any) -> Any:
    match answer:
        case dict():
            return {
                k: without_host_ips(v) for k, v in answer.items() if k not in ("hostIPs", "$setElementOrder/hostIPs")
            }
        case list():
            return [without_host_ips(one) for one in answer]
    return answer


def _status(random: Random, pod: Json, wall: float) -> Json:
    """Of a pod, as a kubelet or anybody else has it."""
    status: Json = status_of_1_16(worlds.draw_status(random, pod, wall))
    for stranger in (c for c in status.get("initContainerStatuses", ()) if c["name"] == "z"):
        stranger["containerID"] = "test://y1"  # no two containers have one id
    if maybe(random, 0.1):  # all was well until it failed
        status["phase"] = "Failed"
        status["conditions"] = [worlds.draw_condition(random, kind) for kind in ("Ready", "gate/x")]
        status["containerStatuses"] = [
            {**worlds.draw_container_status(random, c["name"], wall), "ready": True} for c in pod["spec"]["containers"]
        ]
        return dict(status_of_1_16(status))
    if maybe(random, 0.3):
        status["startTime"] = worlds.odd_time(random, worlds.text_time(worlds.START - 50))
    if maybe(random, 0.2):
        status |= {"reason": "Evicted", "message": random.choice(("", "The node was low on memory"))}
    if maybe(random, 0.5):
        status |= {"hostIP": "192.168.0.1", "podIP": "10.0.0.1"}
    if maybe(random, 0.1):
        status.setdefault("conditions", []).append(worlds.draw_condition(random, "Unschedulable"))
        return dict(status_of_1_16(status))
    return status


def _more(random: Random, step: Json, pod: Json, current: Json) -> Json:
    match step["op"]:
        case "readiness" | "startup":
            keys = ("containerStatuses", "initContainerStatuses")
            ids = [c["containerID"] for key in keys for c in current.get(key, ()) if "containerID" in c]
            return {"id": random.choice(ids or ["test://z1"]), "value": maybe(random, 0.5)}
        case "batch":
            return {"fault": random.choice(FAULTS)}
        case "api":
            return {"pod": _changed(random, pod, step["wall"])}
    return {}


def _changed(random: Random, pod: Json, wall: float) -> Json | None:
    """What somebody else makes of the pod: another one of its name, one on its end, another status, or none."""
    if maybe(random, 0.1):
        return None
    meta = dict(pod["metadata"])
    if maybe(random, 0.1):
        meta["uid"] = "v"
    if maybe(random, 0.6):
        meta |= {"deletionTimestamp": worlds.text_time(wall), "deletionGracePeriodSeconds": 30}
    status = _status(random, pod, wall) if maybe(random, 0.6) else pod["status"]
    return {**pod, "metadata": meta, "status": status}


class OldScene(Scene):
    def _take(self, step: Json) -> Json:
        match step["op"]:
            case "set" if self.watched is not None:
                self.manager.set_pod_status(self.watched, parse_status(msgspec.json.encode(step["status"])))
                return {}
            case "set":
                return {}
            case "any" if self.watched is not None:
                return self._made(self.watched)
            case "batch":
                self.manager.sync_batch(everything=True)
                return {}
        return super()._take(step)

    def take(self, step: Json) -> Json:
        said = super().take(step)
        said.pop("finished", None)  # 1.16 keeps no such word
        return said

    def _made(self, pod: Any) -> Json:
        """Phase and conditions by statuses that are anyhow."""
        said, semantics = parse_status(msgspec.json.encode(self.step["status"])), self.semantics
        pod = replace(pod, generation=0)  # the manager drops it from conditions
        apps, inits, phase = said.container_statuses, said.init_container_statuses, said.phase
        every, ends = (*(apps or ()), *(inits or ())), semantics.phase_ends_readiness
        made = (
            containers_ready_condition(pod, pod.status, apps, phase, failed_is_unready=ends),
            ready_condition(pod, pod.status, said.conditions, apps, phase, failed_is_unready=ends),
            initialized_condition(pod, pod.status, None if inits is None else every, phase, semantics),
        )
        return {
            "phase": str(pod_phase(pod, every, pod_is_terminal=False, initialized=False, semantics=semantics)),
            "conditions": write_status(PodStatus(conditions=made))["conditions"],
        }
