"""One release of the chart on real hosts: helm, and what its pods say of themselves while they run."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kube import contract
from tests.charts.rendering import CHART, helm
from tests.hosts.deployment.api import AdminApi
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.shared.api import Object, condition

HELM_LIMIT_S = 300.0
SETS = (contract.NAME_AGENT, contract.NAME_EXTENDER)
# They come and go by themselves.
NEVER_MIND = {"events", "events.events.k8s.io", "componentstatuses"}
EACH = '{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\\n"}{end}'


@dataclass
class Release:
    """values: the file of the form. given: what is other here, as `path=JSON`. words: what its agents are to say.
    home: a folder for helm's own files."""

    hosts: Hosts
    api: AdminApi
    name: str
    namespace: str
    values: Path
    given: Iterable[str]
    words: tuple[str, str | None, str]
    home: Path
    _environ: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._environ = {**os.environ, **{f"HELM_{kind}_HOME": str(self.home) for kind in ("CACHE", "CONFIG", "DATA")}}

    def helm(self, *words: str) -> str:
        """Raises Refused."""
        where = [f"--kubeconfig={self.hosts.kubeconfig}", f"--namespace={self.namespace}"]
        return helm(*words, *where, environ=self._environ, limit_s=HELM_LIMIT_S)

    def install(self) -> None:
        self.helm("install", self.name, str(CHART), f"--values={self.values}", *(f"--set-json={g}" for g in self.given))

    def upgrade(self, *given: str) -> None:
        self.helm("upgrade", self.name, str(CHART), "--reuse-values", *(f"--set-json={one}" for one in given))

    def pods(self, name: str) -> dict[str, Object]:
        """Of the DaemonSet, by node; those that are told to end left out."""
        path = f"/api/v1/namespaces/{self.namespace}/pods?labelSelector={contract.LABEL_NAME}%3D{name}"
        found = [pod for pod in self.api.items(path) if "deletionTimestamp" not in pod["metadata"]]
        return {pod["spec"].get("nodeName", ""): pod for pod in found}

    def how(self) -> dict[str, object]:
        """Of each DaemonSet: whether it is rolled out, and what its pods say, by node."""
        return {name: (self._is_out(name), self._said(name)) for name in SETS}

    def _is_out(self, name: str) -> bool:
        found = self.api.get(f"/apis/apps/v1/namespaces/{self.namespace}/daemonsets/{name}")
        status, pods = found["status"], self.pods(name)
        is_seen = status.get("observedGeneration") == found["metadata"]["generation"]
        return bool(pods) and is_seen and status.get("updatedNumberScheduled") == len(pods)

    def _said(self, name: str) -> dict[str, tuple[str | None, ...]]:
        """By node: ContainersReady, NodeHealthy, Ready; and what has happened to its containers, "" for nothing."""
        kinds = (contract.CONDITION_CONTAINERS_READY, contract.CONDITION_NODE_HEALTHY, contract.CONDITION_READY)
        return {
            node: (*(condition(pod, kind).get("status") for kind in kinds), happened(pod))
            for node, pod in self.pods(name).items()
        }

    def well(self, extenders: Iterable[str]) -> dict[str, object]:
        """What how() says once all is well. extenders: on these nodes."""
        agents: dict[str, tuple[str | None, ...]] = dict.fromkeys(self.hosts.names, (*self.words, ""))
        return {
            contract.NAME_AGENT: (True, agents),
            contract.NAME_EXTENDER: (True, dict.fromkeys(extenders, ("True", None, "True", ""))),
        }

    def checks(self) -> dict[str, set[str]]:
        """By node, the checks that the agent says it runs."""
        found = {}
        for node, pod in self.pods(contract.NAME_AGENT).items():
            page = self.hosts.ssh(node, f"curl --silent --fail http://{pod['status']['podIP']}:9375/checks").stdout
            found[node] = {check["name"] for check in json.loads(page)["checks"]}
        return found

    def gates(self, node: str) -> list[str]:
        """By which the extender on that node decides; none while what serves people has not heard of any."""
        url = "http://127.0.0.1:9377/api/v1/gates"
        done = self.hosts.ssh(node, f"curl --silent --fail {url}", check=False)
        return [gate["gate"] for gate in json.loads(done.stdout)["gates"]] if done.returncode == 0 else []


def happened(pod: Object) -> str:
    """What has become of containers that are not as they were started."""
    return ", ".join(
        f"{one['name']}: {one['restartCount']} restarts, {one.get('lastState') or one['state']}"
        for one in pod["status"].get("containerStatuses", ())
        if one["restartCount"] or "waiting" in one["state"]
    )


def there(hosts: Hosts) -> set[str]:
    """All objects of the cluster, as `kind namespace/name`, and what on Nodes has readygate's name."""
    listed = hosts.kubectl("api-resources", "--verbs=list", "--output=name").stdout.split()
    kinds = ",".join(sorted({*listed} - NEVER_MIND))
    objects = hosts.kubectl("get", kinds, "--all-namespaces", f"--output=jsonpath={EACH}", timeout_s=120.0).stdout
    nodes = json.loads(hosts.kubectl("get", "nodes", "--output=json").stdout)["items"]
    marks = {
        f"{node['metadata']['name']}: {mark}"
        for node in nodes
        for mark in (
            *node["metadata"].get("annotations", {}),
            *node["metadata"].get("labels", {}),
            *(one["type"] for one in node["status"]["conditions"]),
        )
        if "readygate" in mark
    }
    return {*objects.splitlines(), *marks}
