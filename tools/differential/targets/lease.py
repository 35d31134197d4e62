"""The renewals of a node's Lease, one after the other, against an API server of the history's making."""

from random import Random
from typing import Any

import msgspec

from agent.kubelet.node.lease import LeaseKeeper
from agent.wire.semantics import Semantics
from kube import errors, paths
from kube.contract import NAMESPACE_NODE_LEASE
from kube.times import format_micro_time
from tools.differential import worlds
from tools.differential.target import Answers, History
from tools.differential.worlds import maybe

NAME = "n"
UIDS = ("uid-1", "uid-2", "")  # of the Node; "": it is not there
# A few faults, which a renewal gets over, or an outage. The Node can always be read: one that cannot the kubelet reads
# again in each of its tries, and then after a whole period.
FAULTS = ("error", "error", "conflict", "ok")
OWNER = ("apiVersion", "kind", "name", "uid")
SLEEPS = 8
"""Pauses of a renewal after which the history goes on without it."""


class LeaseTarget:
    name = "lease"

    def draw(self, random: Random) -> History:
        wall = worlds.START
        steps: list[Any] = []
        for index in range(random.randint(2, 5)):
            wall += random.choice((0.25, 10.0, 10.5))
            step: Any = {"wall": wall, "faults": _faults(random)}
            if index == 0 or maybe(random, 0.2):
                step["nodeUID"] = random.choice(UIDS)
            if maybe(random, 0.25):
                step["lease"] = "deleted" if maybe(random, 0.3) else _lease(random, wall)
            steps.append(step)
        return {"durationS": random.choice((40, 20, 4, 1)), "steps": steps}

    def answer(self, history: History, semantics: Semantics) -> Answers:  # noqa: ARG002 - no gate is about Leases
        server = _Server()
        keeper = LeaseKeeper(
            server, NAME, duration_s=history["durationS"], wall=lambda: server.wall, monotonic=lambda: 0.0
        )
        return [_step(server, keeper, step) for step in history["steps"]]

    def told(self, answer: Answers) -> Answers:
        if not isinstance(answer, list):
            return answer
        return [{**step, "lease": _told(step["lease"])} for step in answer]


def _faults(random: Random) -> dict[str, list[str]]:
    if maybe(random, 0.1):
        return {"get": ["always"], "update": ["always"]}
    kinds = {"get": ("error",), "create": ("error", "exists"), "update": FAULTS}
    return {
        kind: [random.choice(of) for _ in range(random.choice((1, 1, 2, 5)))]
        for kind, of in kinds.items()
        if maybe(random, 0.2)
    }


def _lease(random: Random, wall: float) -> Any:
    """One that somebody else has written."""
    metadata: Any = {"name": NAME, "namespace": NAMESPACE_NODE_LEASE}
    if maybe(random, 0.6):
        uid, name = random.choice(("uid-1", "uid-9")), random.choice((NAME, "other"))
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}]
    if maybe(random, 0.3):
        metadata["labels"] = {"a": "b"}
    if maybe(random, 0.1):
        return {"metadata": metadata, "spec": {}}
    spec: Any = {"renewTime": format_micro_time(wall - random.choice((0, 5, 400))), "leaseDurationSeconds": 40}
    if maybe(random, 0.8):
        spec["holderIdentity"] = random.choice((NAME, NAME, "stranger"))
    if maybe(random, 0.2):
        spec["acquireTime"], spec["leaseTransitions"] = format_micro_time(wall - 500), 3
    return {"metadata": metadata, "spec": spec}


def _step(server: "_Server", keeper: LeaseKeeper, step: Any) -> Any:
    server.begin(step)
    pauses = list[float]()
    while True:
        pause_s = keeper.turn()
        if keeper._renewal is None:
            break
        if len(pauses) == SLEEPS:
            keeper._renewal, keeper._latest = None, None
            break
        pauses.append(pause_s)
    return {"lease": server.lease, "asked": server.asked, "pauses": pauses}


def _told(lease: Any) -> Any:
    """What a Lease says: nothing is the same as null or an empty list, and versions are each server's own."""
    if lease is None or "owners" in lease:  # it has been written down
        return lease
    metadata, spec = (
        {k: v for k, v in lease.get(of, {}).items() if v not in (None, [], {})} for of in ("metadata", "spec")
    )
    metadata.pop("resourceVersion", None)
    owners = [[owner.get(key, "") for key in OWNER] for owner in metadata.pop("ownerReferences", ())]
    return {"metadata": metadata, "owners": owners, "spec": spec}


class _Server:
    """A LeaseClient; what `step` of a history says is there and goes wrong. `lease` is replaced and never changed."""

    def __init__(self) -> None:
        self.wall, self.lease, self.node, self.version = 0.0, None, "", 0
        self.faults: dict[str, list[str]] = {}
        self.asked = list[str]()

    def begin(self, step: Any) -> None:
        self.asked = []
        self.wall, self.faults = step["wall"], {kind: list(of) for kind, of in step["faults"].items()}
        self.node = step.get("nodeUID", self.node)
        if step.get("lease") == "deleted":
            self.lease = None
        elif "lease" in step:
            self._put(step["lease"])

    def get(self, path: str, *, deadline_s: float | None = None) -> bytes:  # noqa: ARG002 - the client's
        if path == paths.node(NAME):
            if not self.node:
                raise errors.NotFound(path=path)
            return msgspec.json.encode({"metadata": {"name": NAME, "uid": self.node}})
        self._fault("get", path)
        if self.lease is None:
            raise errors.NotFound(path=path)
        return msgspec.json.encode(self.lease)

    def create(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes:  # noqa: ARG002
        self._fault("create", path)
        if self.lease is not None:
            raise errors.AlreadyExists(path=path)
        return self._put(msgspec.json.decode(body))

    def replace(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes:  # noqa: ARG002
        self._fault("update", path)
        lease = msgspec.json.decode(body)
        if self.lease is None:
            raise errors.NotFound(path=path)
        if lease["metadata"].get("resourceVersion", "") != self.lease["metadata"]["resourceVersion"]:
            raise errors.Conflict(path=path)
        return self._put(lease)

    def _put(self, lease: Any) -> bytes:
        self.version += 1
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(self.version)}}
        return msgspec.json.encode(self.lease)

    def _fault(self, kind: str, path: str) -> None:
        self.asked.append(kind)
        given = self.faults.get(kind) or ["ok"]
        fault = given[0]
        if fault != "always":
            del given[0]
        match fault:
            case "conflict":
                raise errors.Conflict(path=path)
            case "exists":
                raise errors.AlreadyExists(path=path)
            case "error" | "always":
                raise errors.KubeError(path=path, status=500)
