"""A pod's status from what the runtime knows, by kubelet 1.16, and by the agent with `compat: v1.16`.

convertToAPIContainerStatuses and generateAPIPodStatus, up to what the status manager keeps and writes. Draws what rows
CM43-CM44 are about. Not drawn is what differs on purpose: created containers, active deadlines, reasons of pods, failed
starts in pods that are being deleted, and terminal phases that were kept and not written.
"""

from random import Random
from typing import Any

from agent.wire.semantics import Semantics
from tools.differential import worlds
from tools.differential.runtimes import draw_runtime
from tools.differential.target import Answers, History
from tools.differential.targets.status import WHY
from tools.differential.targets.status_1_16 import OldScene, without_host_ips
from tools.differential.worlds import Json, maybe
from tools.differential.worlds_1_16 import pod_of_1_16, status_of_1_16

WRITES = ({"op": "batch", "fault": ""}, {"op": "watch"})
LENGTHS = (0, 1, 1365, 1366, 4096, 4097, 12288, 12289)


class OldGenerateTarget:
    name = "generate-1.16"

    def draw(self, random: Random) -> History:
        pod = pod_of_1_16(worlds.draw_pod(random))
        pod["status"] = _status(random, pod) if maybe(random, 0.6) else {"phase": "Pending"}
        if maybe(random, 0.2):
            pod["spec"]["hostNetwork"] = True
        wall, steps, known = worlds.START, list[Json](), random.choice((0.5, 0.8))
        runtime = _runtime(random, pod, wall, known)
        for number in range(random.choice((1, 1, 2, 3))):
            wall += random.choice((0.0, 0.5, 20.25))
            if number and maybe(random, 0.7):
                runtime = _runtime(random, pod, wall, known)
            steps.append({"op": "sync", "wall": wall, "runtime": runtime, **_more(random, pod)})
            # Else a terminal phase could be kept and not written.
            if pod["spec"]["restartPolicy"] != "Always" or maybe(random, 0.6):
                steps += [{**step, "wall": wall} for step in WRITES]
        return {"pod": pod, "steps": steps}

    def answer(self, history: History, semantics: Semantics) -> Answers:
        scene = _Scene(history, semantics)
        return [scene.take(step) for step in history["steps"]]

    def told(self, answer: Answers) -> Answers:
        """Not hostIPs (row CM40)."""
        return without_host_ips(answer)


class _Scene(OldScene):
    def _take(self, step: Json) -> Json:
        said = super()._take({"terminal": False, **step})
        said.pop("changed", None)  # 1.16 does not say
        return said


def _status(random: Random, pod: Json) -> Json:
    """What the API server has: as a kubelet wrote it before."""
    status: Json = status_of_1_16(worlds.draw_status(random, pod, worlds.START))
    for container in (c for key in ("containerStatuses", "initContainerStatuses") for c in status.get(key, ())):
        if container["name"] == "z":
            container["containerID"] = "test://y1"  # no two containers have one id
    return status


def _runtime(random: Random, pod: Json, wall: float, known: float) -> Json:
    drawn: Any = draw_runtime(random, pod, wall, known=known)
    for container in drawn["containers"]:
        if container["state"] == "created":
            container["state"] = "unknown"
        if maybe(random, 0.01):
            container["message"] = "x" * random.choice(LENGTHS)
    return drawn


def _more(random: Random, pod: Json) -> Json:
    names = [c["name"] for key in ("containers", "initContainers") for c in pod["spec"].get(key, ())]
    fails = 0.0 if "deletionTimestamp" in pod["metadata"] else 0.2
    return {
        "terminal": False,
        "errors": {n: random.choice(WHY) for n in names if maybe(random, fails)},
        "probes": {n: (maybe(random, 0.8), maybe(random, 0.6)) for n in names if maybe(random, 0.8)},
        "host": random.choice((*["192.168.0.1"] * 4, "fd00::9", "")),
    }
