"""What the throughput measurement puts into the real API server: bare nodes, health pods, pods to schedule."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from kube import contract, paths
from kube.auth import Connection
from kube.client import Client, WatchStream
from kube.errors import AlreadyExists, KubeError
from kube.media_types import STRATEGIC_MERGE_PATCH
from tests.bench.processes import MeasurementError

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


def in_parallel(connection: Connection, work: Iterable[int], do: Callable[[Client, int], None]) -> None:
    """Does every piece over CONNECTIONS connections; the first error ends it."""
    local = threading.local()
    clients: list[Client] = []

    def one(piece: int) -> None:
        if not hasattr(local, "client"):
            local.client = Client(connection, user_agent="readygate-bench", deadline_s=30.0)
            clients.append(local.client)
        do(local.client, piece)

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        try:
            for _ in pool.map(one, work):
                pass
        finally:
            for client in clients:
                client.close()


def create(client: Client, path: str, document: dict[str, Any]) -> None:
    """Creates it unless it is there already."""
    try:
        client.create(path, json.dumps(document).encode())
    except AlreadyExists:
        return


def node_name(i: int) -> str:
    return f"bench-node-{i:04d}"


def prepare(connection: Connection, nodes: int, progress: Callable[[str], None]) -> None:
    """Namespaces with their service accounts, the nodes, one Ready health pod on each."""
    client = Client(connection, user_agent="readygate-bench", deadline_s=30.0)
    create(client, paths.namespaces(), {"metadata": {"name": NAMESPACE}})
    for namespace in (NAMESPACE, contract.NAMESPACE):
        # The controller manager would make it in a moment; the admission of pods insists on it now.
        create(client, f"{paths.namespace(namespace)}/serviceaccounts", {"metadata": {"name": "default"}})
    progress(f"scheduler: creating {nodes} nodes")
    in_parallel(connection, range(nodes), _create_node)
    progress(f"scheduler: creating {nodes} health pods")
    in_parallel(connection, range(nodes), _create_health_pod)
    client.close()


def _create_node(client: Client, i: int) -> None:
    sizes = {"cpu": "32", "memory": "256Gi", "pods": "250"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": "2026-11-01T10:00:00Z"}
    labels = {"kubernetes.io/hostname": node_name(i), "topology.kubernetes.io/zone": f"zone-{i % 3}"}
    document = {
        "metadata": {"name": node_name(i), "labels": labels},
        "status": {"capacity": sizes, "allocatable": sizes, "conditions": [ready]},
    }
    create(client, paths.nodes(), document)


def _create_health_pod(client: Client, i: int) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": contract.NAME_AGENT, "uid": DAEMON_SET_UID}
    name = f"{contract.NAME_AGENT}-{i:04d}"
    document = {
        "metadata": {
            "name": name,
            "labels": {contract.LABEL_NAME: contract.NAME_AGENT},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {
            "nodeName": node_name(i),
            "containers": [{"name": "agent", "image": "registry.example.com/readygate:bench"}],
            "tolerations": [{"operator": "Exists"}],
        },
    }
    create(client, paths.pods(contract.NAMESPACE), document)
    conditions = [
        {"type": kind, "status": "True"} for kind in (contract.CONDITION_READY, contract.CONDITION_CONTAINERS_READY)
    ]
    status = {"status": {"phase": "Running", "conditions": conditions}}
    path = paths.pod_status(contract.NAMESPACE, name)
    client.patch(path, json.dumps(status).encode(), content_type=STRATEGIC_MERGE_PATCH)


def create_pods(connection: Connection, count: int) -> None:
    """So many pods that want a node."""
    spec = {
        "containers": [
            {
                "name": "web",
                "image": "registry.example.com/web:bench",
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            }
        ],
        "terminationGracePeriodSeconds": 0,
    }

    def one(client: Client, i: int) -> None:
        document = {"metadata": {"name": f"web-{i:05d}", "labels": {"app": "web"}}, "spec": spec}
        create(client, paths.pods(NAMESPACE), document)

    in_parallel(connection, range(count), one)


def delete_pods(connection: Connection, *, limit_s: float = 60.0) -> None:
    """Removes the pods of the last round and waits until none is left."""
    client = Client(connection, user_agent="readygate-bench", deadline_s=30.0)
    until = time.monotonic() + limit_s
    options = b'{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}'
    while True:
        client.delete(paths.pods(NAMESPACE), options, deadline_s=limit_s)
        left = msgspec.json.decode(client.get(paths.pods(NAMESPACE), query={"limit": "1"}), type=_List).items
        if not left:
            client.close()
            return
        if time.monotonic() > until:
            raise MeasurementError(f"pods of the last round are still there after {limit_s:.0f} s")
        time.sleep(0.2)


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

    def wait(self, count: int, *, limit_s: float) -> list[float]:
        """Monotonic times of `count` bindings, in order. Raises MeasurementError when they do not come."""
        until = time.monotonic() + limit_s
        while len(self._times) < count:
            if time.monotonic() > until:
                bound = len(self._listed().items)
                told = f"{bound} of {count} pods have a node after {limit_s:.0f} s, the watch told {len(self._times)}"
                raise MeasurementError(told)
            time.sleep(0.1)
        return sorted(self._times.values())

    def stop(self) -> None:
        self._stopped = True
        self._stream.close()
        self._thread.join(5.0)
        self._client.close()


def rate(times: Sequence[float]) -> float:
    """Pods a second between the first twentieth and the last: start and tail of a round say nothing of the pace."""
    first, last = len(times) // 20, len(times) - 1 - len(times) // 20
    return (last - first) / (times[last] - times[first])
