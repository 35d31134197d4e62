"""Plugins registered, deregistered and tried again (rows PM1, PM3 to PM12, PM17, PM18), with a clock of ours."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cri.base import Trouble
from agent.kubelet.plugins.base import PluginError, PluginInfo
from agent.kubelet.plugins.handlers import handlers
from agent.kubelet.plugins.manager import PluginManager, plugin_counts
from tests.agent.kubelet.plugins.test_sockets import listen

CSI = PluginInfo("CSIPlugin", "csi.example.com", "", ("1.0.0",))


class World:
    """Plugins by name of their socket, and what they were asked and told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plugins: dict[str, PluginInfo | Trouble] = {}
        self.deaf: set[str] = set()  # cannot be told
        self.lines: list[str] = []
        self.now = 100.0
        self.waiting: list[Callable[[], None]] | None = None
        self.threads = True
        self.manager = PluginManager(
            folder, handlers(), self.connected, monotonic=lambda: self.now, start_thread=self.start
        )

    def start(self, _name: str, run: Callable[[], None]) -> None:
        if not self.threads:
            raise RuntimeError("can't start new thread")
        if self.waiting is None:
            run()
        else:
            self.waiting.append(run)

    def connected(self, socket: str) -> "Fake":
        return Fake(self, Path(socket).name)

    def add(self, name: str, said: PluginInfo | Trouble = CSI) -> None:
        self.plugins[name] = said
        (self.folder / name).unlink(missing_ok=True)
        listen(self.folder / name)

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()

    def turn(self, seconds: float = 1.0) -> list[str]:
        """The names that are registered after it."""
        self.now += seconds
        assert 1.0 == self.manager.turn()
        return [Path(socket).name for socket in self.manager.registered]


class Fake:
    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name

    def connect(self, within_s: float) -> None:
        assert 10.0 == within_s
        self._world.lines.append(f"{self._name}: connected")

    def info(self, within_s: float) -> PluginInfo:
        assert 1.0 == within_s
        said = self._world.plugins[self._name]
        if isinstance(said, Trouble):
            raise PluginError(said, within_s=within_s)
        return said

    def notify(self, error: str, within_s: float) -> None:
        assert 5.0 == within_s
        self._world.lines.append(f"{self._name}: {error or 'registered'}")
        if self._name in self._world.deaf:
            raise PluginError(Trouble.WENT_AWAY)

    def close(self) -> None:
        self._world.lines.append(f"{self._name}: closed")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "plugins_registry")


def test_pm1_a_socket_is_registered_told_so_and_left_alone_then(world: World) -> None:
    assert [] == world.turn()  # the folder is made
    world.add("a")
    assert ["a"] == world.turn()
    assert ["a"] == world.turn()
    assert ["a: connected", "a: registered", "a: closed"] == world.lines


def test_pm3_one_whose_socket_is_gone_is_deregistered(world: World) -> None:
    world.turn()
    world.add("a")
    world.turn()
    world.remove("a")
    assert [] == world.turn()
    world.add("b")  # the same name, from another socket: nobody holds it any more
    assert ["b"] == world.turn()


def test_pm4_one_that_was_made_again_is_registered_again(world: World) -> None:
    world.turn()
    world.add("a")
    world.turn()
    world.add("a")
    assert ["a"] == world.turn()
    assert 2 == world.lines.count("a: registered")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param(
            PluginInfo("Other", "x"), "no handler registered for plugin type: Other", id="PM5: of no type that we know"
        ),
        pytest.param(
            PluginInfo("CSIPlugin", "x"),
            "validation failed for CSI Driver x: it names no supported versions",
            id="PM6: not valid",
        ),
    ],
)
def test_one_that_is_not_taken_is_told_why_and_tried_again(world: World, said: PluginInfo, told: str) -> None:
    world.turn()
    world.add("a", said)
    assert [] == world.turn()
    assert f"a: RegisterPlugin error -- {told}" == world.lines[1]
    world.plugins["a"] = CSI
    assert ["a"] == world.turn()


def test_pm7_one_that_its_handler_does_not_register_is_not_registered(world: World) -> None:
    """Valid when it was asked; meanwhile another one took the name."""
    csi = world.manager._handlers["CSIPlugin"]
    csi.validate = lambda *_: ""  # type: ignore[method-assign]
    csi.register("csi.example.com", ["1.0.0"])
    world.turn()
    world.add("a")
    assert [] == world.turn()
    said = "validation failed for CSI Driver csi.example.com: one of this name is registered, with version 1.0.0"
    assert f"a: RegisterPlugin error -- {said}" == world.lines[1]


def test_pm8_one_that_cannot_be_told_is_not_registered(world: World) -> None:
    world.turn()
    world.add("a")
    world.deaf.add("a")
    assert [] == world.turn()
    world.deaf.clear()
    assert ["a"] == world.turn(), "its name was let go"


def test_pm9_an_error_keeps_the_socket_waiting_longer_and_longer(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.turn()
    world.add("a", Trouble.HANGS)
    with caplog.at_level(logging.WARNING):
        tries = []
        for second in range(140):
            before = len(world.lines)
            world.turn()
            if len(world.lines) > before:
                tries.append(second)
    assert [0, 1, 3, 6, 11, 20, 37, 70, 135] == tries
    assert ["no answer within 1s"] == [record.error for record in caplog.records]  # type: ignore[attr-defined]


def test_pm9_the_next_plugin_of_the_path_waits_too_and_a_success_forgets(world: World) -> None:
    world.turn()
    world.add("a", Trouble.HANGS)
    for _ in range(10):
        world.turn()
    world.add("a")  # made again, and good
    assert [] == world.turn(0.1)
    assert ["a"] == world.turn(8.0)
    world.add("a", Trouble.HANGS)
    assert [] == world.turn()
    world.plugins["a"] = CSI
    assert ["a"] == world.turn(0.6), "the pause is half a second again"


def test_pm10_one_that_is_being_registered_is_let_be(world: World) -> None:
    world.turn()
    world.add("a")
    world.waiting = []
    world.turn()
    world.turn()
    assert 1 == len(world.waiting)
    world.remove("a")
    world.waiting[0]()
    assert ["a"] == [Path(socket).name for socket in world.manager.registered], "registered when it had gone already"
    assert [] == world.turn()


def test_pm12_an_endpoint_that_is_not_given_is_the_socket(world: World) -> None:
    world.turn()
    world.add("a")
    world.add("b", PluginInfo("DRAPlugin", "d", "/other.sock", ("v1.DRAPlugin",)))
    world.turn()
    folder = world.folder
    assert {str(folder / "a"): str(folder / "a"), str(folder / "b"): "/other.sock"} == {
        socket: info.endpoint for socket, info in world.manager.registered.items()
    }


def test_pm17_both_states_are_counted(world: World) -> None:
    world.turn()
    world.add("a")
    world.add("b", Trouble.HANGS)
    world.turn()
    assert [
        ({"socket_path": str(world.folder / "a"), "state": "actual_state_of_world"}, 1.0),
        ({"socket_path": str(world.folder / "a"), "state": "desired_state_of_world"}, 1.0),
        ({"socket_path": str(world.folder / "b"), "state": "desired_state_of_world"}, 1.0),
    ] == plugin_counts(world.manager)


def test_pm18_of_many_at_once_some_wait_for_the_next_turn(world: World) -> None:
    world.turn()
    for n in range(40):
        world.add(f"{n:02}", PluginInfo("DRAPlugin", f"d{n}", "", ("v1.DRAPlugin",)))
    world.waiting = []
    world.turn()
    assert 16 == len(world.waiting)
    world.turn()
    assert 16 == len(world.waiting)
    world.waiting.pop()()
    world.turn()
    assert (16, 1) == (len(world.waiting), len(world.manager.registered))


def test_pm18_a_folder_that_cannot_be_read_changes_nothing_and_is_told_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.turn()
    world.add("a")
    world.turn()
    aside = world.folder.rename(world.folder.with_name("aside"))
    world.folder.write_text("no folder")
    assert (["a"], ["a"]) == (world.turn(), world.turn())
    assert 1 == len(caplog.records)
    world.folder.unlink()
    aside.rename(world.folder)
    assert ["a"] == world.turn()


def test_pm18_a_pause_of_a_socket_that_is_gone_is_forgotten_when_it_is_over(world: World) -> None:
    world.turn()
    world.add("a", Trouble.HANGS)
    world.turn()
    world.remove("a")
    world.turn()
    world.turn()
    assert ({}, {}) == (world.manager._failures, world.manager._said)


def test_without_a_thread_it_is_tried_again(world: World) -> None:
    world.turn()
    world.add("a")
    world.threads = False
    assert [] == world.turn()
    world.threads = True
    assert ["a"] == world.turn()


def test_a_bug_of_a_handler_keeps_nothing_pending(world: World) -> None:
    world.manager._handlers["CSIPlugin"].validate = None  # type: ignore[assignment]
    world.turn()
    world.add("a")
    with pytest.raises(TypeError):
        world.turn()
    assert {} == world.manager._pending
