"""Mode `kubelet`: puts together where pods come from: the API server and, if one is named, a folder of manifests."""

from collections.abc import Callable
from pathlib import Path

from agent.kubelet.node.registration import NodeReporter
from agent.kubelet.pods.manifest_watch import ManifestFiles
from agent.kubelet.pods.mirrors import Mirrors
from agent.kubelet.pods.source import PodSource, PodTable
from agent.kubelet.pods.sync import PodLoop
from agent.report.metrics import Family
from agent.settings import Kubelet
from component.lifecycle import Service
from kube.client import Client


class PodSources:
    """`later`: what is made after this, and asked while the agent runs."""

    def __init__(
        self,
        node: Kubelet,
        client: Client,
        table: PodTable,
        later: Callable[[], tuple[PodLoop, NodeReporter]],
    ) -> None:
        self.api = api = PodSource(client, node.node_name, table)
        self.services: list[Service] = [api]
        self._files = self._mirrors = None
        if node.static_pod_path is None:
            return
        self._files = files = ManifestFiles(Path(node.static_pod_path), node.node_name, table)
        self._mirrors = Mirrors(
            client,
            table,
            pods=lambda: files.pods,
            synced=lambda: self.synced,
            runs=lambda uid: later()[0].could_run(uid),
            ends=lambda namespace, name: later()[0].ends_static(namespace, name),
            node=lambda: later()[1].node,
        )
        self.services += [self._files, self._mirrors]

    @property
    def synced(self) -> bool:
        """Whether it is known which pods there are."""
        return self.api.synced and (self._files is None or self._files.synced)

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
