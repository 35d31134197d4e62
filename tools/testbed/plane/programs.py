"""Our own programs beside a plane, each with the identity it has in a cluster."""

from collections.abc import Mapping
from pathlib import Path

from tools.kit import brakes
from tools.kit.ports import free_port
from tools.kit.programs import Program
from tools.testbed.plane.plane import Plane

EXTENDER_READY_WITHIN_S = 180.0


class Extender(Program):
    """On a free port, with the identity that has the extender's rights only."""

    def __init__(
        self,
        plane: Plane,
        *,
        name: str = "extender",
        server: str | None = None,
        gate: Mapping[str, object] | None = None,
        kick: Mapping[str, object] | None = None,
        log_level: str = "info",
        **sections: object,
    ):
        """sections: others of the configuration file, by their keys. Cap, storm and damping are off unless given, and
        of what is written only the kick is on."""
        settings = {
            "listen": {"address": "127.0.0.1", "port": free_port()},
            "kubernetes": {"kubeconfig": str(plane.kubeconfig_for_extender(server=server))},
            "gates": [dict(gate or {})],
            "kick": dict(kick or {}),
            "feed": {"socket": str(plane.folder / f"{name}-feed" / "socket")},
            "statusApi": {"address": "127.0.0.1", "port": free_port()},
            "log": {"level": log_level},
            "outlets": {"nodeCondition": {"enabled": False}, "events": {"enabled": False}},
            **sections,
        }
        super().__init__("extender", brakes.off(settings), plane.folder, name=name, launch=plane.run.process)

    def start(self, **environ: str) -> None:
        """Returns when it has seen the cluster and answers."""
        super().start(**environ)
        self.process.wait_ready(self.ready, timeout_s=EXTENDER_READY_WITHIN_S)


class StatusApi(Program):
    """The process that shows what an extender decides, by the same configuration."""

    def __init__(self, plane: Plane, extender: Extender):
        name = f"status-api-of-{extender.process.name}"
        super().__init__("extender.web", extender.settings, plane.folder, name=name, launch=plane.run.process)

    @property
    def port(self) -> int:
        return self.settings["statusApi"]["port"]

    def start(self, **environ: str) -> None:
        """Returns when it follows the extender."""
        super().start(**environ)
        self.process.wait_ready(self.ready, timeout_s=EXTENDER_READY_WITHIN_S)

    def metrics(self) -> str:
        return self.get("/metrics")[1]


CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "110"}


class Agent(Program):
    """In mode `kubelet`: it is the node. start() does not wait: whether the node is there, the API server tells. Its
    node has CAPACITY, whatever the machine has, unless the settings say otherwise."""

    def __init__(self, plane: Plane, node: str, *, pod_cidr: str, folder: Path, **kubelet: object):
        self.node = node
        kubelet = {"capacity": CAPACITY, **kubelet}
        settings = {
            "mode": "kubelet",
            "listen": {"address": "127.0.0.1", "port": free_port()},
            "kubernetes": {"kubeconfig": str(plane.kubeconfig_for_node(node))},
            "kubelet": {"nodeName": node, "podCIDR": pod_cidr, "rootDir": str(folder / "run"), **kubelet},
        }
        super().__init__("agent", settings, folder, name=f"agent-{node}", launch=plane.run.process)
