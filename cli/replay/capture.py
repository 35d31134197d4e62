"""Writes a recording: lists and watches like an extender, but writes what it receives to a file."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, Literal

from cli.replay import recording
from component import lifecycle
from component.lifecycle import Service
from component.text import one_line
from extender.cluster import objects
from extender.cluster.health_pods import PodList
from extender.cluster.watches import Watches
from extender.services import daemon_sets_of, speakers_of
from extender.settings import Settings
from kube.client import Client

Do = Literal["replace", "upsert", "remove"]


class Recorder:
    """Writes what the reflectors receive. Has the methods of the stores that an extender's reflectors fill."""

    def __init__(self, settings: Settings, file: BinaryIO, wall: Callable[[], float]) -> None:
        self._file = file
        self._wall = wall
        self._lock = threading.Lock()
        self.fault = ""  # why the file cannot be written any more
        self.lines = 0  # written so far
        lists = dict.fromkeys(one.pods for one in speakers_of(settings))
        self.lists: Mapping[str, PodList] = {f"pods/{place}": one for place, one in enumerate(lists)}
        self.namespaces: Sequence[str] = tuple(
            dict.fromkeys(namespace for namespace, _ in daemon_sets_of(settings).values())
        )
        self.config_map = settings.orders.config_map
        for name, of in (("nodes", recording.NODES), ("orders", recording.ORDERS)):
            self._take(name, of)
        self.kubelets = LeaseStore(self._write, recording.LEASES)
        self.agents = LeaseStore(self._write, recording.AGENTS)

    replace_nodes: Callable[[Sequence[Any]], None]
    upsert_node: Callable[[Any], None]
    remove_node: Callable[[Any], None]
    replace_orders: Callable[[Sequence[Any]], None]
    upsert_orders: Callable[[Any], None]
    remove_orders: Callable[[Any], None]

    def _take(self, name: str, of: str) -> None:
        one = name if name == "orders" else name.removesuffix("s")
        setattr(self, f"replace_{name}", partial(self._write, "replace", of))
        setattr(self, f"upsert_{one}", lambda item: self._write("upsert", of, (item,)))
        setattr(self, f"remove_{one}", lambda item: self._write("remove", of, (item,)))

    def replace_pods(self, of: PodList, pods: Sequence[Any]) -> None:
        self._write("replace", recording.of_pods(*of), pods)

    def upsert_pod(self, of: PodList, pod: object) -> None:
        self._write("upsert", recording.of_pods(*of), (pod,))

    def remove_pod(self, of: PodList, pod: object) -> None:
        self._write("remove", recording.of_pods(*of), (pod,))

    def replace_daemon_sets(self, namespace: str, daemon_sets: Sequence[Any]) -> None:
        self._write("replace", recording.of_daemon_sets(namespace), daemon_sets)

    def upsert_daemon_set(self, daemon_set: objects.DaemonSet) -> None:
        self._write("upsert", recording.of_daemon_sets(daemon_set.metadata.namespace), (daemon_set,))

    def remove_daemon_set(self, daemon_set: objects.DaemonSet) -> None:
        self._write("remove", recording.of_daemon_sets(daemon_set.metadata.namespace), (daemon_set,))

    def end(self) -> None:
        self._put(recording.written(recording.Line(self._wall(), "end")))

    def _write(self, do: Do, of: str, objects: Sequence[object]) -> None:
        self._put(recording.seen(self._wall(), do, of, objects))

    def _put(self, line: bytes) -> None:
        with self._lock:  # held while one line is written to the file
            if self.fault:
                return
            try:
                self._file.write(line)
                self._file.flush()
                self.lines += 1
            except OSError as e:
                self.fault = f"cannot write: {one_line(e.strerror or e)}; free disk space"


@dataclass(frozen=True)
class LeaseStore:
    """Has the methods of the store of a reflector of Leases."""

    write: Callable[[Do, str, Sequence[object]], None]
    of: str

    def replace(self, leases: Sequence[object]) -> None:
        self.write("replace", self.of, leases)

    def upsert(self, lease: object) -> None:
        self.write("upsert", self.of, (lease,))

    def remove(self, lease: object) -> None:
        self.write("remove", self.of, (lease,))


def watches(settings: Settings, recorder: Recorder, client: Client) -> Watches:
    """Creates the reflectors of a recording, without starting them."""
    made = Watches(client)
    made.nodes(recorder)  # type: ignore[arg-type]
    if settings.heartbeat.limit_seconds:
        made.heartbeats(recorder.kubelets)  # type: ignore[arg-type]
    if settings.heartbeat.agents is not None:
        made.heartbeats_of_agents(recorder.agents, settings.namespace)  # type: ignore[arg-type]
    made.around(recorder, settings.namespace)  # type: ignore[arg-type]
    return made


def run(made: Watches, recorder: Recorder, waited: Callable[[], bool]) -> None:
    """Records until waited() returns True or the file cannot be written. Ends all threads."""
    services: list[Service] = list(made.caches.values())
    lifecycle.start_all(services)
    try:
        while not recorder.fault and not waited():
            pass
    finally:
        stops = [threading.Thread(target=service.stop) for service in services]
        for stop in stops:
            stop.start()
        for stop in stops:
            stop.join()
        recorder.end()
