"""What the API server knows of a fleet: which nodes and pods are Ready, and what it has served."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kube.contract import CONDITION_READY, STATUS_TRUE
from tools.testbed.shared.api import Api, Object, condition

LIST_S = 60.0  # 5,000 nodes are 15 MB
_SERVED = re.compile(r"^apiserver_request_total\{(.*?)\} (\S+)$", re.MULTILINE)
_TOOK = re.compile(r"^apiserver_request_duration_seconds_bucket\{(.*?)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Nodes:
    """`ready`: how many are. `changes`: when each has last become Ready or not, as the API server writes it."""

    count: int
    ready: int
    changes: Mapping[str, str]

    def left_since(self, began: str) -> list[str]:
        """Nodes that have changed since then: those that were Ready have not been so all the time."""
        return sorted(name for name, at in self.changes.items() if at >= began)


def nodes(api: Api, names: Iterable[str]) -> Nodes:
    wanted = set(names)
    listed = api.request("GET", "/api/v1/nodes?resourceVersion=0", timeout_s=LIST_S)["items"]
    found = {one["metadata"]["name"]: condition(one, CONDITION_READY) for one in listed}
    ours = {name: found[name] for name in wanted & found.keys()}
    ready = sum(one.get("status") == STATUS_TRUE for one in ours.values())
    return Nodes(len(ours), ready, {name: one.get("lastTransitionTime", "") for name, one in ours.items()})


def ready_pods(api: Api, namespace: str) -> int:
    listed: list[Object] = api.request("GET", f"/api/v1/namespaces/{namespace}/pods", timeout_s=LIST_S)["items"]
    return sum(condition(one, CONDITION_READY).get("status") == STATUS_TRUE for one in listed)


@dataclass(frozen=True)
class Served:
    """By an API server since its start. `requests`: by verb and resource. `renewals`: of Leases, by upper bound in
    seconds, each bound with those below it."""

    requests: Counter[str]
    renewals: Counter[float]

    def since(self, earlier: "Served") -> "Served":
        return Served(self.requests - earlier.requests, self.renewals - earlier.renewals)


def served(metrics: str) -> Served:
    """By its /metrics."""
    requests, renewals = Counter[str](), Counter[float]()
    for labels, value in _SERVED.findall(metrics):
        found = dict(_LABEL.findall(labels))
        if found["verb"] != "WATCH":
            requests[f"{found['verb']} {found['resource']}"] += int(float(value))
    for labels, value in _TOOK.findall(metrics):
        found = dict(_LABEL.findall(labels))
        if (found["verb"], found["resource"]) == ("PUT", "leases"):
            renewals[float(found["le"])] += int(float(value))
    return Served(requests, renewals)


def bound_s(cumulative: Mapping[float, int], fraction: float) -> float:
    """The smallest bound of a histogram that this share does not exceed; 0 without anything."""
    total = max(cumulative.values(), default=0)
    return min((bound for bound, count in cumulative.items() if total and count >= fraction * total), default=0.0)
