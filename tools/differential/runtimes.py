"""What a runtime knows of a pod: drawn at random as JSON, and as the agent has it."""

from random import Random
from typing import Any

from agent.wire.containers import ContainerPhase, RuntimeContainer, RuntimePod, Sandbox
from tools.differential.worlds import Json, maybe

STATES = ("running", "running", "running", "exited", "exited", "created", "unknown")
PHASES = {phase.value: phase for phase in ContainerPhase}
EXIT_CODES = (0, 0, 0, 1, 2, 137)


def draw_runtime(random: Random, pod: Json, wall: float, *, known: float = 0.8) -> Json:
    """Containers newest first, as a kubelet's cache has them. `known`: how likely a container of the pod is there."""
    spec = pod["spec"]
    sandboxes = _sandboxes(random, pod)
    names = [
        c["name"] for c in (*spec.get("initContainers", ()), *spec["containers"], *spec.get("ephemeralContainers", ()))
    ]
    containers: list[Json] = []
    for place, name in enumerate(names):
        if maybe(random, known):
            containers += _instances(random, name, wall - 0.01 * place)
    for container in containers:
        container["sandbox"] = _sandbox_of(random, container, sandboxes)
    containers.sort(key=lambda c: -c["createdAt"])
    return {"sandboxes": sandboxes, "containers": containers}


def _sandbox_of(random: Random, container: Json, sandboxes: list[Json]) -> str:
    """Of the newest one mostly, what runs above all; now and then one that has gone since."""
    if not sandboxes or maybe(random, 0.03):
        return "s0"
    older = 0.2 if container["state"] == "running" else 0.5
    chosen: str = sandboxes[-1 if maybe(random, older) else 0]["id"]
    return chosen


def _sandboxes(random: Random, pod: Json) -> list[Json]:
    host_network = bool(pod["spec"].get("hostNetwork"))
    newest: Json = {"ready": maybe(random, 0.93), "hostNetwork": host_network ^ maybe(random, 0.03)}
    newest["ip"] = random.choice((*["10.0.0.1"] * 4, "10.0.0.2", "fd00::1", "", None))
    older = {"ready": maybe(random, 0.3), "ip": None, "hostNetwork": False}
    sandboxes = [[], [newest], [newest, older]][random.choice((0, 1, 1, 1, 1, 1, 1, 2, 2))]
    return [{"id": f"s{len(sandboxes) - place}", **sandbox} for place, sandbox in enumerate(sandboxes)]


def _instances(random: Random, name: str, wall: float) -> list[Json]:
    count, restarts = random.choice((1, 1, 1, 2, 2, 3)), random.choice((0, 0, 0, 1, 4))
    made = []
    for number in range(count):
        newest = number == count - 1
        state = random.choice(STATES) if newest else "exited"
        at = wall - 20 * (count - number)
        container: Json = {"id": f"test://{name}{number + 1}", "name": name, "state": state, "createdAt": at}
        container["restartCount"] = restarts + number
        if state in ("running", "exited"):
            container["startedAt"] = at + random.choice((0, 0.5))
        if state == "exited":
            container["finishedAt"] = at + random.choice((1, 9.5, 19))
            container["exitCode"] = random.choice(EXIT_CODES)
            container["reason"] = "Completed" if container["exitCode"] == 0 else "Error"
            if maybe(random, 0.1):  # the runtime's word, whatever the code is: of a child that was killed, say
                container["reason"] = "OOMKilled"
        made.append(container)
    return made


def runtime_pod(uid: str, drawn: Json) -> RuntimePod:
    return RuntimePod(
        uid=uid,
        sandboxes=tuple(
            Sandbox(s["ready"], s.get("ip"), s.get("hostNetwork", False), s["id"]) for s in drawn["sandboxes"]
        ),
        containers=tuple(_container(c) for c in drawn["containers"]),
    )


def _container(drawn: Any) -> RuntimeContainer:
    return RuntimeContainer(
        id=drawn["id"],
        name=drawn["name"],
        phase=PHASES[drawn["state"]],
        created_at=drawn["createdAt"],
        started_at=drawn.get("startedAt"),
        finished_at=drawn.get("finishedAt"),
        exit_code=drawn.get("exitCode", 0),
        reason=drawn.get("reason", ""),
        message=drawn.get("message", ""),
        restart_count=drawn.get("restartCount", 0),
        image=drawn.get("image", ""),
        image_id=drawn.get("imageID", ""),
        sandbox_id=drawn["sandbox"],
    )
