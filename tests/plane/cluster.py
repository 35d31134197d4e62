"""A test's own nodes, health pods, extender and scheduler configuration on a plane; everything else is the plane's."""

import contextlib
import itertools
import urllib.parse
from types import TracebackType
from typing import Self

from kube import contract, paths
from tools.kit.waiting import wait_for
from tools.testbed.plane import scheduler_config
from tools.testbed.plane.plane import Plane
from tools.testbed.plane.programs import Extender
from tools.testbed.plane.proxy import DelayingProxy
from tools.testbed.shared import bare
from tools.testbed.shared.api import Object

# The tests write the health pods themselves; the controller would delete or disown them.
WITHOUT_CONTROLLERS = ("daemonset-controller",)
# For what kube-scheduler does within a second on an idle machine. A pod that nothing wakes waits for five minutes.
LIMIT_S = 60.0

_numbers = itertools.count(1)


class Cluster:
    """Constructed empty; what its methods make is ended or deleted on exit, in the reverse order."""

    def __init__(self, plane: Plane):
        self.plane = plane
        self.api = plane.api
        self.health_pods: dict[str, bare.HealthPod] = {}
        self._number = next(_numbers)
        self._owner: Object | None = None
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    def leases(self, namespace: str) -> list[str]:
        """Their names."""
        return [one["metadata"]["name"] for one in self.api.get(paths.leases(namespace))["items"]]

    def add_nodes(self, count: int, **options: str) -> list[str]:
        """Nodes without a health pod. Their names are never used twice in a session. Options as of bare.add_node."""
        names = [f"bare-{self._number}-{number}" for number in range(1, count + 1)]
        for name in names:
            bare.add_node(self.api, name, **options)
            self._exit.callback(self.api.delete, f"/api/v1/nodes/{name}")
        return names

    def add_health_pods(self, nodes: list[str], *, ready: bool) -> None:
        if self._owner is None:
            self.plane.wait_namespace(contract.NAMESPACE)
            self._owner = bare.add_health_daemon_set(self.api)
            path = f"/apis/apps/v1/namespaces/{contract.NAMESPACE}/daemonsets/{contract.NAME_AGENT}"
            self._exit.callback(self.api.delete, path)
        for node in nodes:
            pod = bare.HealthPod(self.api, node, owner=self._owner).create(ready=ready)
            self.health_pods[node] = pod
            self._exit.callback(pod.delete)

    def start_extender(self, *, watch_delay_s: float = 0.0, **options: object) -> Extender:
        """Returns when it answers. Kubelet Leases are not looked at: bare nodes have none.

        watch_delay_s: everything the API server tells the extender from now on arrives that much later.
        """
        server, proxy = None, None
        if watch_delay_s:
            address = urllib.parse.urlsplit(self.plane.server)
            proxy = self._exit.enter_context(DelayingProxy(address.hostname, address.port, delay_s=0.01))
            server = proxy.url
        options.setdefault("heartbeat", {"limitSeconds": 0})
        name = f"extender-{next(_numbers)}"
        extender = Extender(self.plane, name=name, server=server, **options)
        extender.start()
        self._exit.callback(extender.stop)
        if proxy is not None:
            proxy.delay_s = watch_delay_s
        return extender

    def use_extender(self, url: str, **options: object) -> None:
        """The scheduler, started anew, asks the extender at `url`; options as of scheduler_config.extender."""
        self.plane.restart_scheduler(self.plane.scheduler_config([scheduler_config.extender(url, **options)]))

    def add_pod(self, name: str, **options: object) -> None:
        bare.add_pod(self.api, name, **options)
        self._exit.callback(self.api.delete, f"/api/v1/namespaces/default/pods/{name}", grace_s=0)

    def wait_bound(self, name: str, *, timeout_s: float = LIMIT_S) -> str:
        """The node of the pod, "" when it is still pending after that time."""
        return wait_for(lambda: bare.bound_to(bare.pod(self.api, name)), timeout_s=timeout_s) or ""

    def wait_refused(self, name: str, *, timeout_s: float = LIMIT_S) -> str:
        """The scheduler's words about a pod it could not place. An AssertionError when there are none."""
        text = wait_for(lambda: bare.refused(bare.pod(self.api, name)), timeout_s=timeout_s)
        assert text, f"{name} was not refused within {timeout_s:.0f} s: {bare.pod(self.api, name)}"
        return text
