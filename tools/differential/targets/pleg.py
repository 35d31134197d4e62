"""What is told of a runtime's containers, by lists and by events, and what is kept of them.

Compared after each step: events in the order of the channel, the cache, who was freed from waiting for something newer
in it, which pods were inspected, which will be again, the health, whether the channel is full, and how many events it
had no room for. Left out: the runtime's stream of events itself.
"""

from random import Random
from typing import Any

from agent.kubelet.pleg.cache import Cache, Entry
from agent.kubelet.pleg.channel import EventChannel
from agent.kubelet.pleg.generator import EventGenerator
from agent.wire.containers import ContainerEvent, ContainerPhase, EventKind, RuntimeContainer, RuntimePod, Sandbox
from agent.wire.semantics import Semantics
from tools.differential.target import Answers, History
from tools.differential.worlds import START, maybe

UIDS = "pqr"
STATES = ("running", "running", "running", "exited", "exited", "created", "unknown")
PHASES = {phase.value: phase for phase in ContainerPhase}
SANDBOX_STATES = {True: "running", False: "exited"}
KINDS = {kind.value: kind for kind in EventKind}
OPS = ("relist", "relist", "relist", "turns", "turns", "request", "reinspect", "wait")
# Often: after a list of all, what waits is freed by a look at its pod.
FOLLOWING = {"turns": "wait", "wait": "request", "request": "turns"}
# Clocks go back, and lists are missed for longer than the thresholds of three and of ten minutes.
STEPS_S = (0.0, 0.5, 1.0, 1.0, 2.0, 180.0, 180.5, 301.0, 600.5, -1.0, -400.0)
TURNS = 1000  # more than can be asked for
CROWD = (997, 998, 999, 1000, 1001)  # containers, about as many as the channel has room for


class PlegTarget:
    name = "pleg"

    def draw(self, random: Random) -> History:
        evented, wall = maybe(random, 0.3), START
        ops = (*OPS, "event", "event") if evented else OPS
        world: dict[str, Any] = {}
        steps: list[dict[str, Any]] = []
        for _ in range(random.randint(2, 5)):
            before = steps[-1] if steps else {"op": "", "uid": ""}
            follows = before["op"] in FOLLOWING and maybe(random, 0.5)
            wall += random.choice((0.0, 0.25) if follows else STEPS_S)
            step: dict[str, Any] = {"op": FOLLOWING[before["op"]] if follows else random.choice(ops), "wall": wall}
            step["uid"] = before["uid"] if follows else random.choice(UIDS)
            if not steps or maybe(random, 0.6):
                world = step["pods"] = _next_world(random, world)
            _draw_faults(random, step)
            _draw_details(random, step, world)
            steps.append(step)
        room = random.choice((None, None, None, 4, 1, 0))
        if room is None and maybe(random, 0.01):
            _draw_crowd(random, steps)
        return {"evented": evented, "room": room, "steps": steps}

    def answer(self, history: History, semantics: Semantics) -> Answers:
        scene = _Scene(history, semantics)
        return [scene.take(number, step) for number, step in enumerate(history["steps"])]

    def told(self, answer: Answers) -> Answers:
        return answer


def _next_world(random: Random, world: dict[str, Any]) -> dict[str, Any]:
    """Most of what was there is there still, in another state or not."""
    made = {}
    for uid in UIDS:
        before = world.get(uid)
        if before is None or maybe(random, 0.15):
            if maybe(random, 0.6):
                made[uid] = _pod(random)
        elif maybe(random, 0.85):
            made[uid] = _changed(random, before) if maybe(random, 0.6) else before
    return made


def _pod(random: Random) -> dict[str, Any]:
    containers = [[name, random.choice(STATES)] for name in random.sample("abcd", random.choice((0, 1, 1, 2, 3)))]
    names = random.choice((("s1",), ("s1",), ("s2", "s1"), (), ("a",)))  # "a": as a container may be named
    sandboxes = [[name, SANDBOX_STATES[maybe(random, 0.6)]] for name in names]
    return {"c": containers, "s": sandboxes, "ip": random.choice(("10.0.0.1", "10.0.0.2", "")) if sandboxes else ""}


def _changed(random: Random, pod: dict[str, Any]) -> dict[str, Any]:
    containers = [
        [name, random.choice(STATES) if maybe(random, 0.4) else state]
        for name, state in pod["c"]
        if not maybe(random, 0.15)
    ]
    other = _pod(random)
    if maybe(random, 0.3):
        containers += [c for c in other["c"] if c[0] not in {name for name, _ in containers}]
    return {**(other if maybe(random, 0.4) else pod), "c": containers}


def _draw_crowd(random: Random, steps: list[dict[str, Any]]) -> None:
    """A pod with so many containers that their events fill the channel."""
    containers = [[f"c{number}", "running"] for number in range(random.choice(CROWD))]
    steps[0]["pods"] = {**steps[0]["pods"], "p": {"c": containers, "s": [["s1", "running"]], "ip": ""}}
    steps[0]["op"] = "relist"
    steps[0].pop("noList", None)
    steps[0].pop("noStatus", None)
    steps[0]["keep"] = True


def _draw_faults(random: Random, step: dict[str, Any]) -> None:
    if maybe(random, 0.1):
        step["noList"] = True
    if maybe(random, 0.2):
        step["noStatus"] = random.sample(UIDS, random.randint(1, 3))
    if maybe(random, 0.1):
        step["inspected"] = {uid: _pod(random) for uid in random.sample(UIDS, random.randint(1, 2))}
    if maybe(random, 0.1):
        step["keep"] = True


def _draw_details(random: Random, step: dict[str, Any], world: dict[str, Any]) -> None:
    uid = step["uid"]
    match step["op"]:
        case "request":
            step["times"] = random.choice((200, 201)) if maybe(random, 0.04) else random.choice((1, 1, 2))
        case "wait":
            step["since"] = step["wall"] + random.choice((-500.0, -1.0, 0.0, 0.0, 0.5, 1.0, 300.0))
        case "event":
            known = [name for name, _ in (*world.get(uid, {}).get("c", ()), *world.get(uid, {}).get("s", ()))]
            step |= {"kind": random.choice(tuple(KINDS)), "id": random.choice((*known, "z"))}
            step["at"] = step["wall"] + random.choice((0.0, 0.0, -0.5, -1.0, -200.0, 0.25))


class _Scene:
    """The generator without its thread, over a runtime of the history's making. Raises KeyError for what is none."""

    def __init__(self, history: History, semantics: Semantics) -> None:
        self.wall = START
        self.pods: dict[str, RuntimePod] = {}
        self.shown: dict[int, tuple[RuntimePod, Any]] = {}  # what is told of a pod, by its identity
        self.step: dict[str, Any] = {}
        self.inspected: list[str] = []
        self.channel = EventChannel() if history["room"] is None else EventChannel(history["room"])
        self.freed: dict[str, Any] = {}
        self.generator = EventGenerator(
            self,
            Cache(newest_wins=history["evented"]),
            self.channel.put,
            events_come=(lambda _monotonic: True) if history["evented"] else None,
            semantics=semantics,
            monotonic=lambda: self.wall,
        )

    def list_pods(self, uid: str = "") -> list[RuntimePod]:
        if self.step.get("noList"):
            raise OSError("away")
        return [pod for known, pod in self.pods.items() if uid in ("", known)]

    def pod(self, uid: str) -> RuntimePod:
        if self.step["op"] != "event":
            self.inspected.append(uid)
            if uid in self.step.get("noStatus", ()):
                raise OSError("away")
        other = self.step.get("inspected", {}).get(uid)
        return self.pods.get(uid) or RuntimePod(uid) if other is None else _runtime_pod(uid, other)

    def take(self, number: int, step: dict[str, Any]) -> Any:
        self.step, self.wall, self.inspected, self.freed = step, step["wall"], [], {}
        if "pods" in step:
            self.pods = {uid: _runtime_pod(uid, pod) for uid, pod in step["pods"].items()}
        generator, uid = self.generator, step["uid"]
        match step["op"]:
            case "relist":
                generator._relist.relist(self.wall)
            case "turns":
                next(_ for _ in range(TURNS) if generator.turn() > 0)
            case "request":
                for _ in range(step["times"]):
                    generator.request(uid)
            case "reinspect":
                generator.reinspect(uid)
            case "wait":
                self._wait(uid, step["since"], str(number))
            case "event":
                self.wall = step["at"]
                generator.take(ContainerEvent(KINDS[step["kind"]], uid, step["id"]))
                self.wall = step["wall"]
        return self._tell()

    def _wait(self, uid: str, since: float, number: str) -> None:
        def freed(entry: Entry) -> None:
            self.freed[number] = self._told(entry)

        entry = self.generator.cache.newer_than(uid, since, freed)
        if entry is not None:
            freed(entry)

    def _tell(self) -> Any:
        full, discarded = self.channel.full(), self.generator.discarded
        taken = [] if self.step.get("keep") else self.channel.take()
        return {
            "events": [[event.uid, event.type.value, event.container_id] for event in taken],
            **({"full": full} if full else {}),
            **({"discarded": discarded} if discarded else {}),
            "cache": self._cached(),
            "freed": self.freed,
            "inspected": self.inspected,
            "marked": sorted(self.generator._relist._marked),
            "unhealthy": self.generator.unhealthy(self.wall),
        }

    def _cached(self) -> Any:
        """A pod of which nothing is known is the same whether there is an entry for it or not."""
        entries = {uid: self.generator.cache.get(uid) for uid in self.generator.cache.uids()}
        known = {uid: e for uid, e in entries.items() if e.error or e.pod.containers or e.pod.sandboxes or e.pod.ip}
        return {uid: self._told(entry) for uid, entry in known.items()}

    def _told(self, entry: Entry) -> Any:
        pod = entry.pod
        if id(pod) not in self.shown:
            containers = [[c.id, c.phase.value] for c in pod.containers]
            sandboxes = [[s.id, SANDBOX_STATES[s.ready]] for s in pod.sandboxes]
            self.shown[id(pod)] = pod, {"c": containers, "s": sandboxes, "ip": pod.ip}
        return {"error": entry.error is not None, "pod": self.shown[id(pod)][1]}


def _runtime_pod(uid: str, drawn: dict[str, Any]) -> RuntimePod:
    ip = drawn["ip"]
    return RuntimePod(
        uid,
        tuple(Sandbox(state == "running", ip, id=name) for name, state in drawn["s"]),
        tuple(RuntimeContainer(name, name, PHASES[state], 0.0) for name, state in drawn["c"]),
    )
