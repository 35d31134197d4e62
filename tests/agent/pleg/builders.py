"""A runtime that says what a test wants, pods of a few letters, and a relist over both."""

from agent.pleg.cache import Cache
from agent.pleg.relist import GENERIC, Relist
from agent.runtime.base import ContainerPhase, RuntimeContainer, RuntimePod, Sandbox

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


class Scene:
    """`room`: how many events there is room for; `told`: those that were delivered, as "uid type id"."""

    def __init__(self, *, newest_wins=False, pace=GENERIC, room=1000):
        self.runtime = ScriptedRuntime()
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
