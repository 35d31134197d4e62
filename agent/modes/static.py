"""Mode `kubelet`: puts together what static pods need. Without a folder of manifests there is nothing of it."""

from collections.abc import Callable
from pathlib import Path

from agent.model import Node
from agent.pods.files import ManifestFiles
from agent.pods.mirrors import Mirrors
from agent.pods.source import PodTable
from agent.report.metrics import Family
from agent.settings import Kubelet
from component.lifecycle import Service
from kube.client import Client


class StaticPods:
    """Parameters as of agent.pods.mirrors.Mirrors. `api_synced`: whether the pods of the API server are known."""

    def __init__(
        self,
        node: Kubelet,
        client: Client,
        table: PodTable,
        *,
        api_synced: Callable[[], bool],
        runs: Callable[[str], bool],
        ends: Callable[[str, str], bool],
        registered: Callable[[], Node | None],
    ) -> None:
        self._files = self._mirrors = None
        self.services: list[Service] = []
        if node.static_pod_path is None:
            return
        self._files = files = ManifestFiles(Path(node.static_pod_path), node.node_name, table)
        self._mirrors = Mirrors(
            client,
            table,
            pods=lambda: files.pods,
            synced=lambda: files.synced and api_synced(),
            runs=runs,
            ends=ends,
            node=registered,
        )
        self.services = [self._files, self._mirrors]

    @property
    def synced(self) -> bool:
        """Whether it is known which static pods there are."""
        return self._files is None or self._files.synced

    def wake(self) -> None:
        """A mirror pod or the set of static pods has changed."""
        if self._mirrors is not None:
            self._mirrors.wake()

    def families(self) -> list[Family]:
        """What /metrics shows."""
        if self._files is None:
            return []
        counts = (({"state": "good"}, float(self._files.good)), ({"state": "broken"}, float(len(self._files.errors))))
        return [Family("readygate_static_pod_files", "gauge", "Manifests of static pods, by state.", list(counts))]
