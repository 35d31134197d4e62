"""The Node's registration and reports, step by step, against an API server of the history's making, and what a runtime
answers meanwhile: rows N1-N27, N37-N68 and N96-N100 of docs/kubelet-parity.md, on random histories."""

from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import msgspec

from agent.cri.base import RuntimeCondition, RuntimeStatus
from agent.kubelet.node.facts import NodeFacts, amount, in_order, other_causes
from agent.kubelet.node.machine import Machine, huge_pages
from agent.kubelet.node.observed import NOTHING, Observed
from agent.kubelet.node.outage import FAILURES
from agent.kubelet.node.pressure import thresholds_of
from agent.kubelet.node.registration import NodeReporter
from agent.kubelet.node.reserved import reservation
from agent.kubelet.runtime.readiness import Readiness, looked
from agent.processes.command import RuntimeUnavailable
from agent.wire.model import Image, NodeRuntimeHandler
from agent.wire.node import parse_node
from agent.wire.placement_model import Taint
from agent.wire.semantics import Semantics
from kube import errors
from kube.media_types import STRATEGIC_MERGE_PATCH
from tools.differential import worlds
from tools.differential.nodes import LABELS, NAME, drawn_found, drawn_node, drawn_reserved
from tools.differential.target import Answers, History
from tools.differential.worlds import maybe
from tools.fakes.api_patches import merge, strategic_merge

# Why a node is not ready, beside what its runtime says: by who finds it.
CAUSES = {
    "pleg": ("pleg was last seen active 4m0s ago; threshold is 3m0s", "container runtime is down"),
}
RUNTIME = ("RuntimeReady", "NetworkReady")
# What both sides say of this machine; somebody else may have written one of these anew.
INFO = {
    "architecture": "amd64",
    "bootID": "boot",
    "kernelVersion": "6.1",
    "kubeletVersion": "v1.36.3",
    "machineID": "machine",
    "operatingSystem": "linux",
    "osImage": "os",
    "systemUUID": "uuid",
}
TAINTS = ({"key": "gpu", "value": "a", "effect": "NoSchedule"}, {"key": "out", "effect": "NoExecute"})
CIDRS = (["10.0.0.0/24"], ["10.0.0.0/24", "fd00::/64"], ["10.0.1.0/24"])
STEPS_S = (0.0, 0.25, 10.0, 10.0, 29.75, 30.0, 150.0, 299.0, 300.0, 450.0)


class NodeTarget:
    name = "node"

    def draw(self, random: Random) -> History:
        wall = worlds.START
        steps: list[Any] = [_step(random, "register", wall)]
        if maybe(random, 0.5):
            steps[0]["node"] = drawn_node(random, wall)
        else:
            steps[0]["faults"] = {}  # else there would be none to report of
        for _ in range(random.randint(1, 4)):
            wall += random.choice(STEPS_S)
            op = random.choice(("report", "report", "report", "report", "fast", "register"))
            step = _step(random, op, wall)
            if maybe(random, 0.1):  # nothing has changed when it is time to report again, to the second
                wall = steps[-1]["wall"] + 300.0
                step = {"op": "report", "wall": wall, "random": 0.5, "causes": steps[-1]["causes"], "faults": {}}
            if "found" in steps[-1] and maybe(random, 0.4):  # nothing has changed but, perhaps, one thing
                step["found"] = {**steps[-1]["found"], "groups": random.choice((None, True, False))}
            if maybe(random, 0.15):
                step["node"] = drawn_node(random, wall)
            elif maybe(random, 0.15):
                field = random.choice(tuple(INFO))
                step["info"] = {field: random.choice((INFO[field], "other", ""))}
            elif maybe(random, 0.15):
                groups = {"supplementalGroupsPolicy": random.choice((True, False))}
                step["status"] = random.choice(({"declaredFeatures": ["Old"]}, {"features": groups}))
            if maybe(random, 0.3):
                step["cidrs"] = random.choice(CIDRS)
            steps.append({**step, "away": maybe(random, 0.1)})
        return {
            "labels": {k: random.choice(of) for k, of in LABELS.items() if maybe(random, 0.2)},
            "address": "192.0.2.1",
            "cpu": random.choice((4, 4, 6)),
            "memory": random.choice((8 * 2**30, 8 * 2**30, 10**10)),
            "pods": random.choice((110, 110, 30)),
            "machine": random.choice(("machine", "")),
            "uuid": random.choice(("uuid", "")),
            "swap": random.choice((0, 0, 2**30)),
            "declared": random.choice((None, [], ["RestartAllContainersOnContainerExits"])),
            "storage": random.choice((0, 10 * 2**30, 10 * 2**30, 10 * 2**30)),
            "huge": {str(size): random.choice((0, 2, 1500)) for size in (2048, 2**20, 64) if maybe(random, 0.2)},
            "attaches": maybe(random, 0.3),
            "port": random.choice((0, 0, 10250)),
            "soft": random.choice(("", "", "CPU hardcapping unsupported")),
            "taints": [taint for taint in TAINTS if maybe(random, 0.2)],
            **drawn_reserved(random),
            "steps": steps,
        }

    def answer(self, history: History, semantics: Semantics) -> Answers:
        capacity = capacity_of(history)
        try:
            thresholds = thresholds_of(history["hard"], {}, {}, {})
            reserved = reservation(capacity, (history["system"], history["kube"]), thresholds)
        except ValueError:
            return "refused"
        return Scene(history, semantics, capacity, reserved).play()

    def told(self, answer: Answers) -> Answers:
        if not isinstance(answer, list):
            return answer
        return [{**each, "node": _told(each["node"])} if "node" in each else each for each in answer]


def _step(random: Random, op: str, wall: float) -> Any:
    kinds = {"patch": ("error", "conflict", "ok"), "get": ("error", "ok")}
    kinds |= {"create": ("error", "forbidden")} if op == "register" else {}
    faults = {
        kind: [random.choice(of) for _ in range(random.choice((1, 1, 2, 5)))]
        for kind, of in kinds.items()
        if maybe(random, 0.1)
    }
    causes = {kind: random.choice(of) for kind, of in CAUSES.items() if maybe(random, 0.1)}
    step = {"op": op, "wall": wall, "random": 0.5, "causes": causes, "faults": faults}
    if maybe(random, 0.7):  # else it reports again to the second
        step["random"] = random.random()
    if maybe(random, 0.7):
        step["looked"] = [_said_of(random, kind) for kind in RUNTIME if maybe(random, 0.95)]
    return {**step, "found": drawn_found(random)} if maybe(random, 0.4) else step


def _said_of(random: Random, kind: str) -> Any:
    """What an answer of the runtime says of itself."""
    if maybe(random, 0.8):
        return {"type": kind, "status": True}
    return {
        "type": kind,
        "status": False,
        "reason": random.choice(("", "No")),
        "message": random.choice(("", "no CNI")),
    }


class Scene:
    """A NodeClient over what the steps say is there and goes wrong."""

    def __init__(
        self, history: History, semantics: Semantics, capacity: dict[str, str], reserved: dict[str, Fraction]
    ) -> None:
        self.steps, self.now = history["steps"], history["steps"][0]
        self.cidrs: list[str] = []
        self.node: Any = None
        self.faults: dict[str, list[str]] = {}
        self.patches, self.looks = 0, 0
        self.readiness = Readiness()
        facts = NodeFacts(
            NAME,
            history["address"],
            capacity,
            history["labels"],
            _machine(history),
            "v1.36.3",
            None if history["declared"] is None or not semantics.node_declared_features else tuple(history["declared"]),
            history["attaches"],
            history["port"],
            reserved,
            tuple(Taint(**taint) for taint in history["taints"]),
        )
        self.reporter = NodeReporter(
            self,
            facts,
            self._errors,
            update_s=10.0,
            found=lambda: _read_found(self.now.get("found")),
            wall=lambda: self.now["wall"],
            monotonic=lambda: self.now["wall"],
            random=lambda: self.now["random"],
            use_pod_cidr=self._take_cidr,
            get_on_exists_only=semantics.kubelet_registration_get_on_exists_only,
        )

    def play(self) -> Answers:
        answers = []
        for step in self.steps:
            self.now = step
            if "looked" in step:
                said = tuple(RuntimeCondition(**condition) for condition in step["looked"])
                self.readiness = looked(self.readiness, RuntimeStatus(said), step["wall"])
            if step.get("node") is not None:
                self.node = step["node"]
            if "info" in step and self.node is not None:
                status = self.node.get("status", {})
                info = {**status.get("nodeInfo", {}), **step["info"]}
                self.node = {**self.node, "status": {**status, "nodeInfo": info}}
            if "status" in step and self.node is not None:
                self.node = {**self.node, "status": {**self.node.get("status", {}), **step["status"]}}
            if "cidrs" in step and self.node is not None:
                spec = {**self.node.get("spec", {}), "podCIDR": step["cidrs"][0], "podCIDRs": step["cidrs"]}
                self.node = {**self.node, "spec": spec}
            self.faults, self.patches, self.looks = {k: list(v) for k, v in step["faults"].items()}, 0, 0
            said = self._played()
            # Where nothing was written it is as the history made it.
            written = self.node if self.patches or not answers else None
            answers.append({"said": said, "writes": self.patches, "node": written, "cidrs": len(self.cidrs)})
        return [*answers, {"cidrs": self.cidrs}]

    def _take_cidr(self, cidr: str) -> None:
        self.cidrs.append(cidr)
        if self.now.get("away"):
            raise RuntimeUnavailable("away")

    def _errors(self) -> list[str]:
        wall, causes = self.now["wall"], self.now["causes"]
        others = other_causes(events_unhealthy=causes.get("pleg", ""), pods_healthy=True)
        runtime = self.readiness.runtime_errors(wall, others)
        return in_order(runtime=runtime, network=self.readiness.network_errors())

    def _played(self) -> bool:
        try:
            match self.now["op"]:
                case "register":
                    self.reporter.register()
                case "report":
                    self.looks = -1  # the kubelet's first look is its lister's, which cannot fail
                    self.reporter.report()
                case "fast":
                    self.looks = -1  # so is that of the report that follows a patch that failed
                    return self.reporter.report_readiness(parse_node(msgspec.json.encode(self.node)))
        except FAILURES:
            return False
        return True

    def get(self, path: str, *, query: object = None) -> bytes:  # noqa: ARG002 - NodeClient
        self.looks += 1
        if self.looks > 0:
            self._fault("get", path)
        if self.node is None:
            raise errors.NotFound(path=path)
        return msgspec.json.encode(self.node)

    def create(self, path: str, body: bytes) -> bytes:
        self._fault("create", path)
        if self.node is not None:
            raise errors.AlreadyExists(path=path)
        self.node = msgspec.json.decode(body)
        return body

    def patch(self, path: str, body: bytes, *, content_type: str) -> bytes:
        self._fault("patch", path)
        change = msgspec.json.decode(body)
        self.node = (
            strategic_merge(self.node, change) if content_type == STRATEGIC_MERGE_PATCH else merge(self.node, change)
        )
        self.patches += 1
        return msgspec.json.encode(self.node)

    def _fault(self, kind: str, path: str) -> None:
        given = self.faults.get(kind)
        match given.pop(0) if given else "ok":
            case "forbidden":
                raise errors.Forbidden(path=path)
            case "conflict":
                raise errors.Conflict(path=path)
            case "error":
                raise errors.KubeError(path=path, status=500)


def _machine(history: History) -> Machine:
    given = (history[key] for key in ("swap", "soft", "uuid"))
    return Machine("amd64", "6.1", "os", history["machine"], "boot", *given)


def capacity_of(history: History) -> dict[str, str]:
    """Of the machine."""
    found = {"cpu": str(history["cpu"]), "memory": str(history["memory"]), "pods": str(history["pods"])}
    found |= dict(huge_pages(int(size), pages) for size, pages in history["huge"].items())
    return {**found, **({"ephemeral-storage": str(history["storage"])} if history["storage"] else {})}


def _read_found(given: Any) -> Observed:
    if given is None:
        return NOTHING
    return Observed(
        tuple(Image(i["id"], i["size"], tuple(i["digests"]), tuple(i["tags"])) for i in given["images"]),
        tuple(NodeRuntimeHandler(h["name"], h["mounts"], h["users"]) for h in given["handlers"]),
        None if given["volumes"] is None else tuple(given["volumes"]),
        frozenset(given["pressures"]),
        supplemental_groups_policy=given["groups"],
    )


@cache
def _amount(quantity: str) -> str:
    return str(amount(quantity))


def _told(node: Any) -> Any:
    """What a Node says: amounts by value, nothing is the same as null."""
    if node is None:
        return None
    metadata, spec, status = node.get("metadata", {}), node.get("spec", {}), node.get("status", {})
    return {
        "taints": [[t["key"], t.get("value", ""), t["effect"]] for t in spec.get("taints") or ()],
        "podCIDRs": spec.get("podCIDRs") or [],
        "labels": metadata.get("labels") or {},
        "addresses": [[a.get("type", ""), a.get("address", "")] for a in status.get("addresses") or ()],
        "capacity": {k: _amount(v) for k, v in sorted((status.get("capacity") or {}).items())},
        "allocatable": {k: _amount(v) for k, v in sorted((status.get("allocatable") or {}).items())},
        "nodeInfo": {k: v for k, v in sorted((status.get("nodeInfo") or {}).items()) if v},
        **{key: status.get(key) or [] for key in ("runtimeHandlers", "volumesInUse", "declaredFeatures")},
        "features": status.get("features"),
        "port": (status.get("daemonEndpoints") or {}).get("kubeletEndpoint", {}).get("Port", 0),
        "annotations": metadata.get("annotations") or {},
        "images": [[i.get("names") or [], i.get("sizeBytes", 0)] for i in status.get("images") or ()],
        "conditions": sorted(sorted((k, v) for k, v in c.items() if v) for c in status.get("conditions") or ()),
    }
