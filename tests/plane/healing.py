"""Many nodes that heal together while pods wait, and what is written to the Nodes meanwhile, as anybody may see it."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from extender.outlets.kick import ANNOTATION_KICK
from kube import contract
from tests.plane.cluster import WITHOUT_CONTROLLERS, Cluster
from tools.kit.waiting import wait_for
from tools.testbed.plane.plane import Plane
from tools.testbed.shared.api import Api, condition

WRITERS = 4  # write at a time, so that the heals are what the API server takes, not more
WATCH_S = 900  # longer than a test takes
QUIET_S = 6.0  # longer than a kick and its repeat take


class KickWatch:
    """Counts the kicks that arrive at Nodes until its end, by a watch of its own."""

    def __init__(self, api: Api):
        self._api = api
        self._over = threading.Event()
        self._values: dict[str, float] = {}
        self._opened: set[str] = set()
        self.opened_before = 0  # Nodes whose condition of ours has turned True before the first kick
        self._known: set[str] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._known = {_kick_of(node) for node in self._api.items("/api/v1/nodes")}
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()  # its thread ends with the next event

    @property
    def kicks(self) -> int:
        """Values no Node had before. The watch begins with what is there already."""
        return len(self._values)

    @property
    def first_at(self) -> float:
        """Monotonic seconds; infinite if there was none."""
        return min(self._values.values(), default=math.inf)

    def _watch(self) -> None:
        for _, node in self._api.watch("/api/v1/nodes", timeout_s=WATCH_S):
            if self._over.is_set():
                return
            self._ready.set()
            if condition(node, contract.CONDITION_NODE_HEALTHY).get("status") == "True":
                self._opened.add(node["metadata"]["name"])
            value = _kick_of(node)
            if value not in self._known:
                self.opened_before = self.opened_before if self._values else len(self._opened)
                self._values.setdefault(value, time.monotonic())


def _kick_of(node: dict[str, object]) -> str:
    metadata: dict[str, dict[str, str]] = node["metadata"]  # type: ignore[assignment]
    return (metadata.get("annotations") or {}).get(ANNOTATION_KICK, "")


@dataclass(frozen=True, slots=True)
class Healed:
    """patches: Node writes of kicks, from the first heal until nothing more comes. writes_s: of the heals themselves.
    bound_s: from the first heal to the last binding of a pod that waited; infinite if one was not bound.
    kicked_s: from the first heal to the first kick. opened_before: as of KickWatch."""

    patches: int
    bound_s: float
    writes_s: float
    kicked_s: float = math.inf
    opened_before: int = 0


def heal_together(cluster: Cluster, nodes: Sequence[str], pods: Sequence[str], *, limit_s: float = 20.0) -> Healed:
    """All these nodes heal at once, as far as the API server takes the writes; these pods wait for any of them."""
    with KickWatch(cluster.api) as watch:
        began = time.monotonic()
        with ThreadPoolExecutor(WRITERS + 1) as pool:
            bound = pool.submit(_all_bound, cluster.api, set(pods), limit_s)
            list(pool.map(lambda node: cluster.health_pods[node].say(ready=True), nodes))
            writes_s = time.monotonic() - began
            bound_at = bound.result()
        time.sleep(QUIET_S)
        patches = watch.kicks
    return Healed(patches, bound_at - began, writes_s, watch.first_at - began, watch.opened_before)


def _all_bound(api: Api, pods: set[str], limit_s: float) -> float:
    """When, monotonic."""

    def bound() -> float | None:
        waiting = {
            pod["metadata"]["name"]
            for pod in api.items("/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName=")
            if pod["metadata"]["name"] in pods
        }
        return None if waiting else time.monotonic()

    return wait_for(bound, timeout_s=limit_s, every_s=0.02) or float("inf")


def refuse(cluster: Cluster, pods: Sequence[str], *, nodes: Sequence[str | None] = ()) -> None:
    """Returns when kube-scheduler has refused all of these pods and rests. nodes: where each is pinned to, if so."""
    for number, pod in enumerate(pods):
        cluster.add_pod(pod, node=nodes[number] if nodes else None)
    for pod in pods:
        cluster.wait_refused(pod)
    time.sleep(1.0)  # a refusal is written into the pod, which is an event for the others


def kick_300(say: Callable[[str], None] = lambda _: None, *, nodes: int = 300, pods: int = 20) -> Healed:
    """On a plane of its own: so many pods wait while all of so many nodes are closed; then all nodes heal."""
    with Plane("kick-300", without_controllers=WITHOUT_CONTROLLERS, progress=say) as plane, Cluster(plane) as cluster:
        names = cluster.add_nodes(nodes)
        cluster.add_health_pods(names, ready=False)
        extender = cluster.start_extender()
        cluster.use_extender(extender.url)
        waiting = [f"waits-{number}" for number in range(pods)]
        refuse(cluster, waiting)
        healed = heal_together(cluster, names, waiting)
        say(f"{nodes} nodes healed within {healed.writes_s:.2f} s, {pods} pods waiting: {healed}")
    return healed
