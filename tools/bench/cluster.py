"""What the throughput measurement puts into the real API server: bare nodes, health pods, pods to schedule."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from kube import contract, paths
from kube.auth import Connection
from kube.client import Client
from kube.errors import KubeError
from kube.stream import WatchStream
from tools.bench.processes import MeasurementError
from tools.testbed.shared import bare
from tools.testbed.shared.api import Api

NAMESPACE = "bench"
CONNECTIONS = 4
BOUND = "spec.nodeName!="
DAEMON_SET_UID = "d5000000-0000-4000-8000-000000000001"


class _Metadata(msgspec.Struct):
    name: str = ""
    resource_version: str = msgspec.field(default="", name="resourceVersion")


class _Object(msgspec.Struct):
    metadata: _Metadata


class _Event(msgspec.Struct):
    type: str
    object: _Object


class _List(msgspec.Struct):
    metadata: _Metadata
    items: list[_Object]


def in_parallel(do: Callable[[int], object], count: int) -> None:
    """Does it for 0, 1, ... over CONNECTIONS connections; the first error ends it."""
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for _ in pool.map(do, range(count)):
            pass


def node_name(i: int) -> str:
    return f"bench-node-{i:04d}"


def priority_class(batch: int) -> str:
    """Of the pods of the batch with this number, the first being 0."""
    return f"bench-batch-{batch:03d}"


def prepare(api: Api, nodes: int, batches: int, progress: Callable[[str], None]) -> None:
    """Namespaces with their service accounts, the nodes, one Ready health pod on each, a priority for each batch."""
    for batch in range(batches):
        api.create_unless_there(
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"metadata": {"name": priority_class(batch)}, "value": batches - batch, "preemptionPolicy": "Never"},
        )
    api.create_unless_there("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for namespace in (NAMESPACE, contract.NAMESPACE):
        # The controller manager would make it in a moment; the admission of pods insists on it now.
        api.create_unless_there(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    owner = {"metadata": {"name": contract.NAME_AGENT, "uid": DAEMON_SET_UID}}

    def add_node(i: int) -> None:
        labels = {"topology.kubernetes.io/zone": f"zone-{i % 3}"}
        bare.add_node(api, node_name(i), cpu="32", memory="256Gi", pods="250", labels=labels)

    def add_health_pod(i: int) -> None:
        bare.HealthPod(api, node_name(i), owner=owner).create(ready=True)

    for what, add in (("nodes", add_node), ("health pods", add_health_pod)):
        progress(f"scheduler: creating {nodes} {what}")
        in_parallel(add, nodes)


def create_pods(api: Api, resources: Sequence[str], *, batch: int) -> list[str]:
    """A pod that wants a node for each of these extended resources, of which it asks for zero; their names.

    Each `batch` of them has a lower priority than the one before: a scheduler that starts later takes them by priority,
    and within one in any order (it hears of all that are there in the order of a map).
    """

    def create(i: int) -> None:
        asked = {"cpu": "100m", "memory": "64Mi", resources[i]: "0"}
        spec = {
            "containers": [
                {
                    "name": "web",
                    "image": "registry.example.com/web:bench",
                    "resources": {"requests": asked, "limits": {resources[i]: "0"}},
                }
            ],
            "terminationGracePeriodSeconds": 0,
            "priorityClassName": priority_class(i // batch),
        }
        document = {"metadata": {"name": names[i], "labels": {"app": "web"}}, "spec": spec}
        api.create(f"/api/v1/namespaces/{NAMESPACE}/pods", document)

    names = [f"web-{i:05d}" for i in range(len(resources))]
    in_parallel(create, len(resources))
    return names


class Bindings:
    """Notes when each pod got its node, from a watch that shows bound pods only."""

    def __init__(self, connection: Connection) -> None:
        self._client = Client(connection, user_agent="readygate-bench", deadline_s=30.0)
        self._version = self._listed().metadata.resource_version
        self._times: dict[str, float] = {}
        self._stopped = False
        self._stream = self._open()
        self._thread = threading.Thread(target=self._read, name="bindings", daemon=True)
        self._thread.start()

    def _listed(self) -> _List:
        reply = self._client.get(paths.pods(NAMESPACE), query={"fieldSelector": BOUND})
        return msgspec.json.decode(reply, type=_List)

    def _open(self) -> WatchStream:
        query = {"fieldSelector": BOUND, "resourceVersion": self._version, "timeoutSeconds": "600"}
        return self._client.watch(paths.pods(NAMESPACE), query=query, silence_limit_s=600.0)

    def _read(self) -> None:
        decode = msgspec.json.Decoder(_Event).decode
        while not self._stopped:
            try:
                for line in self._stream:
                    now = time.monotonic()
                    event = decode(line)
                    if event.type in ("ADDED", "MODIFIED"):
                        self._times.setdefault(event.object.metadata.name, now)
                        self._version = event.object.metadata.resource_version
                if not self._stopped:
                    self._stream = self._open()  # the API server may end a watch at any time: it goes on where it was
            except KubeError:
                return  # the wait for the last pod then says how far it came

    def wait(self, count: int, *, limit_s: float) -> dict[str, float]:
        """When each of `count` pods got its node (monotonic). Raises MeasurementError when they do not come."""
        until = time.monotonic() + limit_s
        while len(self._times) < count:
            if time.monotonic() > until:
                bound = len(self._listed().items)
                told = f"{bound} of {count} pods have a node after {limit_s:.0f} s, the watch told {len(self._times)}"
                raise MeasurementError(told)
            time.sleep(0.1)
        return dict(self._times)

    def stop(self) -> None:
        self._stopped = True
        self._stream.close()
        self._thread.join(5.0)
        self._client.close()
