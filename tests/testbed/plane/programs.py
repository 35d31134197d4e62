"""Our own programs as processes of a plane: started by their command line, with a configuration file, as by anybody."""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from tests.kit.ports import free_port
from tests.testbed.plane.plane import Plane
from tests.testbed.shared.processes import Process

CHECKOUT = Path(__file__).resolve().parents[3]
EXTENDER_READY_WITHIN_S = 20.0


def python_environ() -> dict[str, str]:
    """So that `python -m agent` finds this checkout from any working directory."""
    named = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(CHECKOUT), *([named] if named else [])]), "PYTHONUNBUFFERED": "1"}


class Extender:
    """`python -m extender --config FILE` on a free port, with the identity that has the extender's rights only."""

    def __init__(
        self,
        plane: Plane,
        *,
        name: str = "extender",
        server: str | None = None,
        gate: Mapping[str, object] | None = None,
        kick: Mapping[str, object] | None = None,
        log_level: str = "info",
    ):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.config = plane.folder / f"{name}.yaml"
        self._settings = {
            "listen": {"address": "127.0.0.1", "port": self.port},
            "kubernetes": {"kubeconfig": str(plane.kubeconfig_for_extender(server=server))},
            "gate": dict(gate or {}),
            "kick": dict(kick or {}),
            "log": {"level": log_level},
        }
        argv: list[str | Path] = [sys.executable, "-m", "extender", "--config", self.config]
        self.process: Process = plane.run.process(name, argv, environ=python_environ(), cwd=plane.folder)

    def start(self) -> None:
        """Returns when it has seen the cluster and answers."""
        self.config.write_text(json.dumps(self._settings, indent=1))
        self.process.start()
        self.process.wait_ready(self.ready, timeout_s=EXTENDER_READY_WITHIN_S)

    def ready(self) -> bool:
        return fetch(f"{self.url}/readyz")[0] == 200

    def metrics(self) -> str:
        return fetch(f"{self.url}/metrics")[1]

    def stop(self) -> int | None:
        return self.process.stop()


class Agent:
    """`python -m agent --config FILE` in mode `kubelet`: it is the node."""

    def __init__(self, plane: Plane, node: str, *, pod_cidr: str, folder: Path, **kubelet: object):
        self.node = node
        self.folder = folder
        self.config = folder / "agent.yaml"
        self.port = free_port()
        self._settings = {
            "mode": "kubelet",
            "listen": {"address": "127.0.0.1", "port": self.port},
            "kubernetes": {"kubeconfig": str(plane.kubeconfig_for_node(node))},
            "kubelet": {"nodeName": node, "podCIDR": pod_cidr, "rootDir": str(folder / "run"), **kubelet},
        }
        argv: list[str | Path] = [sys.executable, "-m", "agent", "--config", self.config]
        self.process: Process = plane.run.process(f"agent-{node}", argv, environ=python_environ(), cwd=folder)

    def start(self) -> None:
        """Does not wait: whether the node is there, the API server tells."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.config.write_text(json.dumps(self._settings, indent=1))
        self.process.start()


def fetch(url: str) -> tuple[int, str]:
    """(status, body); status 0 without an answer."""
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode(errors="replace")
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return 0, ""
