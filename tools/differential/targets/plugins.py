"""The plugin manager, turn by turn: sockets that come and go, plugins that answer, refuse, are refused or take long.

Left out: how sockets are found (a kubelet is told by the kernel, the agent reads the folder), and that a pause ends
with its socket here, which keeps the memory bounded.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from agent.cri.base import Trouble
from agent.kubelet.plugins.base import PluginError, PluginInfo
from agent.kubelet.plugins.manager import PluginManager
from agent.kubelet.plugins.sockets import Version
from agent.wire.semantics import Semantics
from tools.differential import worlds
from tools.differential.target import Answers, History
from tools.differential.worlds import maybe

SOCKETS = ("/r/s1", "/r/s2", "/r/s3")
STEPS_S = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 2.0, 4.5, 130.0)
LONG_S = (130.0, 121.75, 122.0, 122.25, 123.0)
TURNS = 4
"""So often one step is looked at again, which each that started something is."""


class PluginsTarget:
    name = "plugins"

    def draw(self, random: Random) -> History:
        wall, making = worlds.START, dict.fromkeys(SOCKETS, 1)
        there = {socket for socket in SOCKETS if maybe(random, 0.6)}
        plugins = {socket: self._plugin(random, socket) for socket in SOCKETS}
        steps = []
        worse = maybe(random, 0.05)  # one fails until the pause between two tries grows no more
        if worse:
            there, plugins[SOCKETS[0]] = {SOCKETS[0]}, {**plugins[SOCKETS[0]], "fails": "connect"}
        for number in range(12 if worse else random.randint(1, 8)):
            wall += random.choice(LONG_S if number > 7 else LONG_S[:1]) if worse else random.choice(STEPS_S)
            for socket in SOCKETS[1:] if worse else SOCKETS:
                if maybe(random, 0.2):
                    there ^= {socket}
                    making[socket] += 1
                if maybe(random, 0.15):
                    making[socket] += 1
                if maybe(random, 0.3) and not (worse and socket == SOCKETS[0]):
                    plugins[socket] = self._plugin(random, socket)
            step = {"sockets": {s: making[s] for s in SOCKETS if s in there}, "plugins": dict(plugins), "wall": wall}
            steps.append({**step, "slow": [s for s in SOCKETS if maybe(random, 0.15)]})
        return {"steps": steps}

    def _plugin(self, random: Random, socket: str) -> Any:
        return {
            "type": random.choice(("A", "A", "A", "A", "B")),
            "name": f"{random.choice(('good', 'good', 'good', 'bad', 'no'))}-{Path(socket).name}",
            "fails": random.choice(("", "", "", "", "connect", "info", "notify")),
        }

    def answer(self, history: History, semantics: Semantics) -> Answers:  # noqa: ARG002 - no gate is about plugins
        scene = _Scene()
        return [scene.take(step) for step in history["steps"]]

    def told(self, answer: Answers) -> Answers:
        return answer


class _Manager(PluginManager):
    """Its folder is the history's. Pauses stay, as upstream's."""

    def __init__(self, scene: "_Scene", **more: Any) -> None:
        super().__init__(Path("/r"), {"A": _Consumer(scene)}, lambda socket: _Plugin(scene, socket), **more)
        self._scene = scene

    def _look(self) -> dict[str, Version]:
        return {socket: Version(1, 1, number) for socket, number in self._scene.step["sockets"].items()}

    def _forget(self, monotonic: float) -> None:
        pass


class _Scene:
    def __init__(self) -> None:
        self.step: Any = {}
        self.calls: dict[str, list[Any]] = {}
        self.started: list[tuple[str, Callable[[], None]]] = []
        self.manager = _Manager(
            self,
            monotonic=lambda: self.step["wall"],
            start_thread=lambda name, run: self.started.append((f"/r/{name}", run)),
        )

    def take(self, step: Any) -> Any:
        self.step, self.calls = step, {}
        for turn in range(TURNS):
            if turn or not self.started:
                self.manager.turn()
            waiting, self.started = self.started, []
            for socket, run in waiting:
                if socket in step["slow"]:
                    self.started.append((socket, run))
                else:
                    run()
        registered = sorted(f"{socket} {info.name}" for socket, info in self.manager.registered.items())
        return {"calls": self.calls, "registered": registered}

    def call(self, socket: str, *words: str) -> None:
        self.calls.setdefault(socket, []).append(list(words))


class _Consumer:
    """Of all plugins of one type."""

    def __init__(self, scene: _Scene) -> None:
        self._scene = scene

    def validate(self, name: str, versions: Sequence[str]) -> str:  # noqa: ARG002 - as each handler
        self._call("validate", name)
        return "not valid" if name.startswith("bad") else ""

    def register(self, name: str, versions: Sequence[str]) -> str:  # noqa: ARG002 - as each handler
        self._call("register", name)
        return "not taken" if name.startswith("no") else ""

    def deregister(self, name: str) -> None:
        self._call("deregister", name)

    def _call(self, what: str, name: str) -> None:
        self._scene.call(f"/r/{name.rpartition('-')[2]}", what, name)


class _Plugin:
    def __init__(self, scene: _Scene, socket: str) -> None:
        self._scene, self._socket = scene, socket

    def _may_fail(self, what: str) -> Any:
        plugin = self._scene.step["plugins"].get(self._socket)
        if plugin is None or plugin["fails"] == what:
            raise PluginError(Trouble.NOBODY_LISTENS)
        return plugin

    def connect(self, within_s: float) -> None:  # noqa: ARG002 - the history says what hangs
        self._may_fail("connect")

    def info(self, within_s: float) -> PluginInfo:  # noqa: ARG002
        plugin = self._may_fail("info")
        return PluginInfo(plugin["type"], plugin["name"], "", (self._socket,))

    def notify(self, error: str, within_s: float) -> None:  # noqa: ARG002
        self._scene.call(self._socket, "told", "refused" if error else "registered")
        self._may_fail("notify")

    def close(self) -> None:
        """Nothing is open."""
