"""What is to be done for a pod's containers, how long each has to end, and for whose end it waits.

computePodActions with all it calls, setTerminationGracePeriod, killContainer with preStop hooks, terminationOrdering.
Left out, as the agent does not model it: resizes, changed definitions of containers.
"""

from dataclasses import replace
from random import Random

import msgspec

from agent.kubelet.events.event import Event
from agent.kubelet.pods.actions import Inputs, Kill, pod_actions, waits_for
from agent.kubelet.pods.ending import Ender, PodEnds
from agent.kubelet.pods.hooks import Hook
from agent.wire.containers import ContainerPhase, RuntimePod
from agent.wire.model import Pod, PodStatus, Result
from agent.wire.pod import parse_pod
from agent.wire.semantics import Semantics
from agent.wire.status import parse_status
from tools.differential import worlds
from tools.differential.runtimes import draw_runtime, runtime_pod
from tools.differential.target import Answers, History
from tools.differential.worlds import Json, maybe

AT_ONCE = {"takes": 0, "fails": False}
RESULTS = {True: Result.SUCCESS, False: Result.FAILURE}


class ActionsTarget:
    name = "actions"

    def draw(self, random: Random) -> History:
        pod = worlds.draw_pod(random)
        spec = pod["spec"]
        spec["terminationGracePeriodSeconds"] = random.choice((0, 1, 20, 30))
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            for kind in ("startupProbe", "livenessProbe"):
                if kind in container and maybe(random, 0.4):
                    container[kind]["terminationGracePeriodSeconds"] = random.choice((1, 5, 60))
            if maybe(random, 0.4):
                container["lifecycle"] = {"preStop": {"sleep": {"seconds": 1}}}
        runtime = draw_runtime(random, pod, worlds.START, known=random.choice((0.4, 0.8, 1.0)))
        ids = [c["id"] for c in runtime["containers"]]
        return {
            "pod": pod,
            "runtime": runtime,
            "liveness": {i: maybe(random, 0.6) for i in ids if maybe(random, 0.5)},
            "startup": {i: maybe(random, 0.7) for i in ids if maybe(random, 0.7)},
            "restartAll": maybe(random, 0.05),
            "hooks": {
                c["name"]: {"takes": random.choice((0, 0.5, 1, 1.5, 18.5, 1e6)), "fails": maybe(random, 0.3)}
                for c in (*spec["containers"], *spec.get("initContainers", ()))
            },
            # Only a fix looks at it.
            "status": worlds.draw_status(random, pod, worlds.START) if maybe(random, 0.2) else {},
        }

    def answer(self, history: History, semantics: Semantics) -> Answers:
        pod = parse_pod(msgspec.json.encode(history["pod"]))
        runtime = runtime_pod(pod.uid, history["runtime"])
        made = pod_actions(
            Inputs(
                pod,
                runtime,
                _status(history.get("status", {})),
                lambda container_id: RESULTS.get(history["liveness"].get(container_id)),
                lambda container_id: RESULTS.get(history["startup"].get(container_id)),
                semantics,
                restart_all=history.get("restartAll", False),
            )
        )
        up = [c for c in runtime.containers if c.phase is ContainerPhase.RUNNING]
        running = [instance.name for instance in up]
        return {
            "killPod": made.kill_pod,
            "createSandbox": made.create_sandbox,
            "init": [start.container.name for start in made.init_starts],
            "ephemeral": [start.container.name for start in made.ephemeral_starts],
            "start": [start.container.name for start in made.starts],
            "kill": [
                {
                    "id": k.instance.id,
                    "message": k.reason,
                    "grace": k.grace_s,
                    "hook": _Killing(runtime, history["hooks"][k.instance.name]).of(pod, k),
                }
                for k in sorted(made.kills, key=lambda kill: kill.instance.id)
            ],
            "reset": [{"id": r.instance.id, "kill": r.kill} for r in made.removals],
            "ends": {
                c.name: _Killing(replace(runtime, containers=(c,)), history["hooks"].get(c.name, AT_ONCE)).of_all(pod)
                for c in up
            },
            "waits": {name: sorted(others) for name, others in waits_for(pod, running).items()},
        }

    def told(self, answer: Answers) -> Answers:
        return answer


def _status(drawn: Json) -> PodStatus:
    return parse_status(msgspec.json.encode(drawn))


class _Killing:
    """Runtime and hooks of one kill, and what is done by them."""

    def __init__(self, runtime: RuntimePod, end: Json) -> None:
        self._runtime = runtime
        self._end = end
        self._stops: list[float] = []
        self._hooks: list[Hook] = []
        self._told: list[str] = []

    def of(self, pod: Pod, kill: Kill) -> Json:
        ender = Ender(self, self, record=self._tell)  # type: ignore[arg-type] # in part
        ends = PodEnds()
        ender.kill(pod, ends, kill, None, 0.0)
        limit_s = ender.go_on(pod, ends, 0.0)
        if limit_s is not None:
            ender.go_on(pod, ends, self._hook_ends(limit_s))
        return self._said()

    def of_all(self, pod: Pod) -> Json:
        """The pod is to end; of its containers this one is left."""
        ender, ends = Ender(self, self, record=self._tell), PodEnds()  # type: ignore[arg-type] # in part
        limit_s = ender.end_all(pod, ends, 0.0)
        if self._hooks and limit_s is not None:
            ender.end_all(pod, ends, self._hook_ends(limit_s))
        return self._said()

    def _hook_ends(self, limit_s: float) -> float:
        """When nobody waits for the hook any more."""
        if self._end["takes"] > limit_s:
            return limit_s
        self._hooks[0].error = "it failed" if self._end["fails"] else None
        self._hooks[0].over = True
        return float(self._end["takes"])

    def _tell(self, event: Event) -> None:
        self._told.append(f"{event.type} {event.reason} {event.message}")

    def _said(self) -> Json:
        return {"ran": bool(self._hooks), "stop": self._stops[0], "events": self._told}

    def pod(self, _uid: str) -> RuntimePod:
        return self._runtime

    def stop_container(self, _container_id: str, grace_s: float) -> None:
        self._stops.append(grace_s)

    def start(self, *_what: object, **_limits: object) -> Hook:
        self._hooks.append(Hook())
        return self._hooks[-1]
