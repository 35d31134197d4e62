"""A whole agent in mode `kubelet` as a virtual node, without its port and its reader of the machine's kernel log."""

import itertools
import json
from pathlib import Path

from agent import settings
from agent.kubelet.node.oom_watcher import OomWatcher
from agent.kubelet.node.registration import NodeReporter
from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.generator import EventGenerator
from agent.kubelet.pods.work_queue import WorkQueue
from agent.kubelet.runtime.readiness import Readiness
from agent.modes import kubelet
from agent.modes.kubelet import Containers
from agent.report.server import HealthServer
from agent.settings import Kubelet, Settings
from agent.wire.semantics import Semantics
from component import lifecycle
from component.lifecycle import Service
from kube.auth import Connection
from tools.fleet.runtime import VirtualRuntime

CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "110"}
ONCE = (HealthServer, OomWatcher)


def block(number: int) -> str:
    """The first three numbers of the addresses of a node and its pods: nobody listens there."""
    return f"10.{64 + number // 256}.{number % 256}"


def settings_of(name: str, number: int, folder: Path, *, duration_s: int, update_s: int) -> Settings:
    node = {
        "nodeName": name,
        "rootDir": str(folder / name),
        "podCIDR": f"{block(number)}.0/24",
        "capacity": CAPACITY,
        "leaseDurationSeconds": duration_s,
        "nodeStatusUpdateSeconds": update_s,
    }
    return settings.parse(json.dumps({"mode": "kubelet", "kubelet": node}).encode(), {})


def _contain(number: int) -> kubelet.Contain:
    def made(_node: Kubelet, inbox: WorkQueue, semantics: Semantics) -> Containers:
        last = itertools.cycle(range(2, 255))
        runtime = VirtualRuntime(f"{block(number)}.1", lambda: f"{block(number)}.{next(last)}")
        events = EventGenerator(runtime, Cache(newest_wins=True), inbox.deliver, events_come=None, semantics=semantics)
        return Containers(runtime, events, lambda monotonic: Readiness(monotonic, network=""))

    return made


class FullNode:
    """Constructed, then started. `number`: its own among the nodes of a fleet."""

    def __init__(self, given: Settings, number: int, connection: Connection) -> None:
        services = kubelet.assemble(given, connection, _contain(number))
        self.services: list[Service] = [one for one in services if not isinstance(one, ONCE)]
        self._reporter = next(one for one in services if isinstance(one, NodeReporter))

    @property
    def ready(self) -> bool:
        return self._reporter.node is not None

    def start(self) -> None:
        lifecycle.start_all(self.services)

    def stop(self) -> None:
        lifecycle.stop_all(self.services)
