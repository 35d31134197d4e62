"""The set of the demo: control plane, three agents that are the nodes, health DaemonSet, extender, and what breaks."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from agent.wire.condition import REASON_CHECK_FAILED
from kube import contract
from tools.kit.child import Child, ProcessError
from tools.kit.ports import free_port
from tools.kit.programs import fetch, python_environ
from tools.testbed.plane import identities, scheduler_config
from tools.testbed.plane.plane import Plane
from tools.testbed.plane.programs import Agent, Extender, StatusApi
from tools.testbed.shared import nameserver, obstacles
from tools.testbed.shared.api import Object
from tools.testbed.shared.binaries import Progress, kube_binaries
from tools.testbed.shared.processes import RUN_VARIABLE

NODES = ("node-1", "node-2", "node-3")
HEALTH_PORT = 9375
# Short, so that nobody has to wait: a kubelet renews its Lease every 10 s, and the extender's default limit is 20 s.
LEASE_S = 4
LEASE_LIMIT_S = 5
CHECK_PERIOD_S = 1
CHECK_FAILURES = 2
_CNI_CONFIG = {"cniVersion": "0.4.0", "name": "demo", "plugins": [{"type": "bridge"}]}


class Stage:
    """Constructed, then raised in pieces by the play; strike() ends all of it and may be called at any time."""

    def __init__(self, progress: Progress):
        # The controller manager gives a silent node 50 s before it taints it: what closes a node here is readygate.
        self.plane = Plane("demo", nodes=NODES, node_lifecycle=True, scheduler=False)
        self._progress = progress
        self.folder = self.plane.folder
        self.agents: dict[str, Agent] = {}
        self.extender: Extender | None = None
        self.status_api: StatusApi | None = None
        self._name_servers: dict[str, Child] = {}

    @property
    def logs(self) -> Path:
        return self.plane.logs

    def raise_plane(self) -> None:
        if lacking := obstacles.disk_space():
            raise ProcessError(lacking[0])
        kube_binaries(self._progress)
        self.plane.up()
        self.api = self.plane.api
        self._write_shell_file()

    def check(self) -> None:
        """Raises ProcessError when a program ended by itself."""
        self.plane.check()
        for agent in self.agents.values():
            agent.process.check()
        for program in (self.extender, self.status_api):
            if program:
                program.process.check()

    def strike(self) -> None:
        self.plane.down()

    def start_nodes(self) -> None:
        # A loopback block of its own for each demo of this machine: pods of two demos must not share an address.
        block = 1 + int(self.plane.server.rpartition(":")[2]) % 250
        for number, name in enumerate(NODES, start=1):
            self._furnish(name)
            self.agents[name] = Agent(
                self.plane,
                name,
                pod_cidr=f"127.{block}.{number}.0/24",
                folder=self.folder / name,
                leaseDurationSeconds=LEASE_S,
                capacity={"cpu": "8", "memory": "16Gi", "pods": "60"},
            )
            self.agents[name].start()

    def start_scheduling(self) -> None:
        """The extender, kube-scheduler with a configuration that names it, and what shows people the decisions."""
        self.extender = Extender(self.plane, heartbeat={"limitSeconds": LEASE_LIMIT_S}, kick={"repeatAfterSeconds": 2})
        config = self.plane.scheduler_config([scheduler_config.extender(self.extender.url, mode="enforce")])
        self.status_api = StatusApi(self.plane, self.extender)
        starts = [self.extender.start, self.status_api.start, lambda: self.plane.start_scheduler(config)]
        with ThreadPoolExecutor(len(starts)) as pool:
            for done in [pool.submit(start) for start in starts]:
                done.result()

    # ---- what breaks and heals

    def break_plugin(self, node: str) -> None:
        self._plugin(node).chmod(0o644)

    def mend_plugin(self, node: str) -> None:
        self._plugin(node).chmod(0o755)

    def kill_name_server(self, node: str) -> None:
        self._name_servers[node].kill()

    def start_name_server(self, node: str) -> None:
        self._name_servers[node].start()

    def kill_agent(self, node: str) -> None:
        self.agents[node].process.kill()

    def start_agent(self, node: str) -> None:
        self.agents[node].start()

    def _plugin(self, node: str) -> Path:
        return self.folder / node / "cni" / "bin" / "bridge"

    def _furnish(self, node: str) -> None:
        """The node's CNI folders, its name server (as a DNS cache on each node is), its health pod's configuration."""
        folder = self.folder / node
        (folder / "cni" / "net.d").mkdir(parents=True)
        (folder / "cni" / "bin").mkdir()
        for binary in (self._plugin(node), folder / "cni" / "bin" / "loopback"):
            binary.touch(mode=0o755)
        (folder / "cni" / "net.d" / "10-demo.conflist").write_text(json.dumps(_CNI_CONFIG))
        port = free_port()
        argv: list[str | Path] = [sys.executable, nameserver.__file__, "127.0.0.1", str(port)]
        self._name_servers[node] = self.plane.run.process(f"name-server-{node}", argv)
        self._name_servers[node].start()
        often = {"periodSeconds": CHECK_PERIOD_S, "failureThreshold": CHECK_FAILURES}
        cni = {"confDir": str(folder / "cni" / "net.d"), "binDirs": [str(folder / "cni" / "bin")]}
        health = {
            "mode": "pod",
            "listen": {"address": "$(POD_IP)", "port": HEALTH_PORT},
            "kubernetes": {"kubeconfig": str(self.plane.kubeconfig_for(identities.AGENT))},
            "checks": [
                {"name": "cni", "cni": cni, **often},
                {"name": "dns", "tcpSocket": {"host": "127.0.0.1", "port": port}, **often},
            ],
            "condition": {"publish": True},
        }
        (folder / "health.yaml").write_text(yaml.safe_dump(health, sort_keys=False))

    # ---- what is deployed

    def deploy_health_pods(self) -> None:
        self.plane.wait_namespace(contract.NAMESPACE)
        identities.grant_agent(self.api)
        labels = {contract.LABEL_NAME: contract.NAME_AGENT, "app.kubernetes.io/part-of": "readygate"}
        container = {
            "name": "agent",
            "image": "readygate/agent:demo",
            "command": [sys.executable, "-m", "agent", "--config", f"{self.folder}/$(NODE_NAME)/health.yaml"],
            "env": [
                {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
                *({"name": name, "value": value} for name, value in self._pod_environ().items()),
            ],
            "ports": [{"name": "health", "containerPort": HEALTH_PORT}],
            "readinessProbe": {
                "httpGet": {"path": "/readyz", "port": "health"},
                "periodSeconds": CHECK_PERIOD_S,
                "failureThreshold": 1,
            },
        }
        spec = {
            "containers": [container],
            "readinessGates": [{"conditionType": contract.CONDITION_NODE_HEALTHY}],
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 2,
        }
        self.api.create(
            f"/apis/apps/v1/namespaces/{contract.NAMESPACE}/daemonsets",
            {
                "metadata": {"name": contract.NAME_AGENT, "labels": labels},
                "spec": {
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": spec},
                },
            },
        )

    def deploy(self, name: str, replicas: int) -> None:
        """A Deployment whose pods sleep and like to spread over the nodes."""
        labels = {"app": name}
        spread = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels},
        }
        self.api.create(
            "/apis/apps/v1/namespaces/default/deployments",
            {
                "metadata": {"name": name},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {**self._sleeping_spec(), "topologySpreadConstraints": [spread]},
                    },
                },
            },
        )

    def scale(self, name: str, replicas: int) -> None:
        self.api.patch(f"/apis/apps/v1/namespaces/default/deployments/{name}", {"spec": {"replicas": replicas}})

    def add_pod_for(self, name: str, node: str) -> None:
        """A pod that only `node` will do for."""
        spec = {**self._sleeping_spec(), "nodeSelector": {"kubernetes.io/hostname": node}}
        self.api.create("/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec})

    def delete_pod(self, name: str) -> None:
        self.api.delete(f"/api/v1/namespaces/default/pods/{name}", grace_s=0)

    def _sleeping_spec(self) -> Object:
        container = {
            "name": "main",
            "image": "sleep",
            "command": ["sleep", "1000000"],
            "env": [{"name": name, "value": value} for name, value in self._run_environ().items()],
        }
        return {"containers": [container], "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 1}

    def _run_environ(self) -> dict[str, str]:
        # Containers do not inherit the agent's environment; by this the testbed finds them when their agent was killed.
        return {RUN_VARIABLE: str(self.folder)}

    def _pod_environ(self) -> dict[str, str]:
        return {**python_environ(), **self._run_environ()}

    # ---- for the person

    def evidence(self, node: str) -> str | None:
        """Why the extender keeps the node closed, once it names a check: the last column of `readygate status`."""
        status, body = fetch(f"{self.status_api.url}/api/v1/nodes") if self.status_api else (0, "")
        found = (
            [seen["evidence"] for seen in json.loads(body)["nodes"] if seen["node"] == node] if status == 200 else []
        )
        return next((text for text in found if REASON_CHECK_FAILED in text), None)

    @property
    def shell_file(self) -> Path:
        return self.folder / "env"

    def _write_shell_file(self) -> None:
        folders = f"{kube_binaries()}:{Path(sys.executable).parent}"
        self.shell_file.write_text(
            f"export KUBECONFIG={self.plane.kubeconfig}\nexport PATH={folders}:$PATH\nexport DEMO={self.folder}\n"
        )

    def what_to_try(self) -> list[tuple[str, str]]:
        """(what it does, command line)."""
        return [
            ("first, in another terminal: kubectl, readygate and $DEMO", f". {self.shell_file}"),
            ("all pods, and what becomes of them", "kubectl get pods -A -o wide --watch"),
            ("the verdict on every node", f"readygate status --server {self.status_api.url}"),
            ("break node-2", "chmod -x $DEMO/node-2/cni/bin/bridge"),
            ("new pods go elsewhere", "kubectl scale deployment web --replicas=30"),
            ("mend it: it is open again", "chmod +x $DEMO/node-2/cni/bin/bridge"),
            ("why pods were pending", "kubectl get events --field-selector reason=FailedScheduling"),
            ("the extender's metrics", f"curl -s {self.status_api.url}/metrics"),
        ]
