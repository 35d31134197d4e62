"""A runtime that says what a test wants, pods of a few letters, and a relist over both."""

from dataclasses import replace

from agent.cri import api_pb2 as cri
from agent.cri.convert import LABEL_POD_UID, bare_id, listed_pods
from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.relist import GENERIC, Relist
from agent.wire.containers import ContainerPhase, RuntimeContainer, RuntimePod, Sandbox

PHASES = {
    "c": ContainerPhase.CREATED,
    "r": ContainerPhase.RUNNING,
    "x": ContainerPhase.EXITED,
    "u": ContainerPhase.UNKNOWN,
}


class ScriptedRuntime:
    """`pods`: what it lists. `inspected`: what was asked for. `breaks`: uid, or "list" -> what is raised."""

    def __init__(self):
        self.pods = {}
        self.inspected = []
        self.breaks = {}

    def list_pods(self, uid=""):
        self._maybe_break("list")
        return tuple(pod for known, pod in self.pods.items() if uid in ("", known))

    def pod(self, uid):
        self.inspected.append(uid)
        self._maybe_break(uid)
        return self.pods.get(uid, RuntimePod(uid))

    def _maybe_break(self, what):
        if what in self.breaks:
            raise self.breaks[what]


class CriRuntime(ScriptedRuntime):
    """The same, listed as a container runtime would list it."""

    def list_pods(self, uid=""):
        pods = super().list_pods(uid)
        sandboxes = [cri_sandbox(pod.uid, sandbox) for pod in pods for sandbox in pod.sandboxes]
        containers = [cri_container(pod.uid, container) for pod in pods for container in pod.containers]
        return [
            replace(
                pod,
                sandboxes=tuple(replace(s, id=bare_id(s.id)) for s in pod.sandboxes),
                containers=tuple(replace(c, id=bare_id(c.id)) for c in pod.containers),
            )
            for pod in listed_pods(sandboxes, containers, "rt")
        ]


def cri_sandbox(uid, sandbox):
    state = cri.SANDBOX_READY if sandbox.ready else cri.SANDBOX_NOTREADY
    return cri.PodSandbox(id=sandbox.id, metadata={"uid": uid}, state=state)


def cri_container(uid, container):
    state = cri.ContainerState.Value(f"CONTAINER_{container.phase.name}")
    what = {"metadata": {"name": container.name}, "image": {"image": "i"}, "labels": {LABEL_POD_UID: uid}}
    return cri.Container(id=container.id, pod_sandbox_id="s1", state=state, **what)


class Scene:
    """`room`: how many events there is room for; `told`: those that were delivered, as "uid type id"."""

    runtime_type = ScriptedRuntime

    def __init__(self, *, newest_wins=False, pace=GENERIC, room=1000):
        self.runtime = self.runtime_type()
        self.cache = Cache(newest_wins=newest_wins)
        self.relist = Relist(self.runtime, self.cache, self._deliver, pace=pace)
        self.room = room
        self._told = []

    def _deliver(self, event):
        if len(self._told) >= self.room:
            return False
        self._told.append(" ".join((event.uid, event.type, event.container_id)).rstrip())
        return True

    def show(self, **pods):
        """uid -> "c1=r c2=x", a sandbox as "s1=S" (ready) or "s1=s"."""
        self.runtime.pods = {uid: made(uid, text) for uid, text in pods.items()}

    def told(self):
        """Since the last time."""
        told, self._told = self._told, []
        return told


def made(uid, text, ip=""):
    pairs = [part.split("=") for part in text.split()]
    containers = tuple(RuntimeContainer(i, i, PHASES[letter], 0.0) for i, letter in pairs if letter in PHASES)
    sandboxes = tuple(Sandbox(letter == "S", ip, id=i) for i, letter in pairs if letter in "Ss")
    return RuntimePod(uid, sandboxes, containers)
