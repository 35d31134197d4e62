"""A reflector that follows the nodes of the fake API server, its back-off noted and cut short."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from kube import paths
from kube.client import Client
from kube.objects import ObjectMeta
from kube.reflector import ListerWatcher, Reflector
from tools.fakes.api_server import FakeApiServer, Request
from tools.kit.waiting import wait_until


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    unschedulable: bool = False  # a test that says "yes" here makes an object that cannot be decoded


class Node(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: Spec | None = None


class Recorder:
    """A store: resourceVersion by name, what was called, and the names it refuses."""

    def __init__(self) -> None:
        self.versions: dict[str, str] = {}
        self.calls: list[tuple[str, object]] = []
        self.refused: set[str] = set()

    def replace(self, items: Sequence[Node]) -> None:
        self.versions = {item.metadata.name: item.metadata.resource_version for item in items}
        self.calls.append(("replace", sorted(self.versions)))

    def upsert(self, item: Node) -> None:
        if item.metadata.name in self.refused:
            raise ValueError("not this one")
        self.versions[item.metadata.name] = item.metadata.resource_version
        self.calls.append(("upsert", item.metadata.name))

    def remove(self, item: Node) -> None:
        self.versions.pop(item.metadata.name, None)
        self.calls.append(("remove", item.metadata.name))


@dataclass
class Following:
    """pauses: seconds the back-off asked for, in order."""

    api: FakeApiServer
    reflector: Reflector[Node]
    store: Recorder
    pauses: list[float]

    def wait_version(self, version: int) -> None:
        """Until the reflector has come to this resourceVersion."""
        wait_until(lambda: self.reflector.resource_version == str(version), f"version {version}")

    def wait_looks(self, count: int = 2) -> None:
        """Until the open watch has looked so often whether there is something to do."""
        looks, take_over = [], self.reflector._take_over

        def counted(lines):
            looks.append(lines)
            return take_over(lines)

        self.reflector._take_over = counted
        wait_until(lambda: len(looks) >= count, "looks of the watch")
        self.reflector._take_over = take_over

    @property
    def lists(self) -> list[Request]:
        return [r for r in self.api.requests if not r.is_watch]

    @property
    def watches(self) -> list[Request]:
        return [r for r in self.api.requests if r.is_watch]


def node(name: str, **more) -> dict:
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}, **more}


def cut_short(reflector: Reflector, pause_s: float) -> list[float]:
    """Makes each pause of the reflector so long. The pauses that it asks for, in order, as they come."""
    pauses: list[float] = []
    turn = reflector._loop.turn

    def short() -> float:
        asked_s = turn()
        if asked_s:
            pauses.append(asked_s)
        return min(asked_s, pause_s)

    reflector._loop.turn = short
    return pauses


@contextmanager
def following(api: FakeApiServer, *, started: bool = True, pause_s: float = 0.01, **options) -> Iterator[Following]:
    """Started, its first list taken over and its watch open (unless `started` is False). No jitter."""
    client = Client(api.connection(), user_agent="test", deadline_s=2.0)
    store = Recorder()
    lister_watcher = ListerWatcher(client, paths.nodes(), Node)
    reflector = Reflector(lister_watcher, store, name="nodes", **{"random": lambda: 0.0, **options})
    pauses = cut_short(reflector, pause_s)
    try:
        if started:
            reflector.start()
            assert reflector.wait_synced(30)
            api.wait_watchers(1)
        yield Following(api, reflector, store, pauses)
    finally:
        reflector.stop()
        client.close()
