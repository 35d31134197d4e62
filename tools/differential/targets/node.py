"""The Node's registration and reports, step by step, against an API server of the history's making, and what a runtime
answers meanwhile: rows N1-N27 and N37-N68 of docs/kubelet-parity.md, on random histories."""

from functools import cache
from random import Random
from typing import Any

import msgspec

from agent.cri.base import RuntimeCondition, RuntimeStatus
from agent.cri.readiness import Readiness, looked
from agent.model import Image, NodeRuntimeHandler
from agent.node.facts import ATTACHES, NodeFacts, amount, in_order, other_causes
from agent.node.found import NOTHING, Found
from agent.node.machine import Machine, huge_pages
from agent.node.outage import FAILURES
from agent.node.registration import NodeReporter
from agent.pods.admission import refusal
from agent.semantics import Semantics
from agent.wire.node import parse_node
from agent.wire.pod import parse_pod
from kube import errors
from kube.media_types import STRATEGIC_MERGE_PATCH
from kube.times import format_time
from tools.differential import worlds
from tools.differential.target import Answers, History
from tools.differential.worlds import maybe
from tools.fakes.api_patches import merge, strategic_merge

NAME = "n"
LABELS = {
    "kubernetes.io/hostname": (NAME, "other"),
    "kubernetes.io/os": ("linux", "plan9"),
    "kubernetes.io/arch": ("amd64", "arm64"),
    "beta.kubernetes.io/os": ("linux", "plan9"),
    "topology.kubernetes.io/zone": ("a", "b", ""),
    "pool": ("x", "y"),
}
# Why a node is not ready, beside what its runtime says: by who finds it.
CAUSES = {
    "pleg": ("pleg was last seen active 4m0s ago; threshold is 3m0s", "container runtime is down"),
    "storage": ("CSINode is not yet initialized", "container runtime is down"),
    "shutdown": ("node is shutting down",),
}
RUNTIME = ("RuntimeReady", "NetworkReady")
CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "FrequentReboots")
ADDRESSES = (
    ("InternalIP", "192.0.2.1"),
    ("InternalIP", "192.0.2.9"),
    ("Hostname", NAME),
    ("ExternalIP", "198.51.100.1"),
)
# Amounts that somebody else has written, each as the API server keeps it.
CAPACITY = {
    "cpu": ("4", "2"),
    "memory": ("8Gi", "4Gi"),
    "pods": ("110", "30"),
    "ephemeral-storage": ("10Gi",),
    "hugepages-2Mi": ("0", "4Mi", "8Gi"),
    "hugepages-1Gi": ("0", "1Gi"),
    "example.com/gpu": ("2",),
    "kubernetes.io/odd": ("1",),
}
# What both sides say of this machine; somebody else may have written one of these anew.
INFO = {
    "architecture": "amd64",
    "bootID": "boot",
    "kernelVersion": "6.1",
    "kubeletVersion": "v1.36.3",
    "machineID": "machine",
    "operatingSystem": "linux",
    "osImage": "os",
    "systemUUID": "machine",
}
STEPS_S = (0.0, 0.25, 10.0, 10.0, 29.75, 30.0, 150.0, 299.0, 300.0, 450.0)


class NodeTarget:
    name = "node"

    def draw(self, random: Random) -> History:
        wall = worlds.START
        steps: list[Any] = [_step(random, "register", wall)]
        if maybe(random, 0.5):
            steps[0]["node"] = _node(random, wall)
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
                step["node"] = _node(random, wall)
            elif maybe(random, 0.15):
                field = random.choice(tuple(INFO))
                step["info"] = {field: random.choice((INFO[field], "other", ""))}
            elif maybe(random, 0.15):
                groups = {"supplementalGroupsPolicy": random.choice((True, False))}
                step["status"] = random.choice(({"declaredFeatures": ["Old"]}, {"features": groups}))
            steps.append(step)
        return {
            "labels": {k: random.choice(of) for k, of in LABELS.items() if maybe(random, 0.2)},
            "address": "192.0.2.1",
            "cpu": random.choice((4, 4, 6)),
            "memory": random.choice((8 * 2**30, 8 * 2**30, 10**10)),
            "pods": random.choice((110, 110, 30)),
            "machine": random.choice(("machine", "")),
            "swap": random.choice((0, 0, 2**30)),
            "declared": random.choice((None, [], ["RestartAllContainersOnContainerExits"])),
            "storage": random.choice((0, 10 * 2**30, 10 * 2**30, 10 * 2**30)),
            "huge": {str(size): random.choice((0, 2, 1500)) for size in (2048, 2**20, 64) if maybe(random, 0.2)},
            "attaches": maybe(random, 0.3),
            "port": random.choice((0, 0, 10250)),
            "soft": random.choice(("", "", "CPU hardcapping unsupported")),
            "asked": [_pod(random) for _ in range(random.choice((0, 0, 1)))],
            "steps": steps,
        }

    def answer(self, history: History, semantics: Semantics) -> Answers:
        return _Scene(history, semantics).play()

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
    return {**step, "found": _found(random)} if maybe(random, 0.4) else step


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


def _pod(random: Random) -> Any:
    """As far as it may need what a node declares."""
    action = random.choice(("Restart", "RestartAllContainers"))
    rules = [{"action": action, "exitCodes": {"operator": "In", "values": [1]}}] if maybe(random, 0.7) else []
    with_rules = {"name": "c", "restartPolicy": "Never", "restartPolicyRules": rules}
    kinds = ("containers", "initContainers")
    spec: Any = {kind: [random.choice((with_rules, {"name": "d"}))] for kind in kinds if maybe(random, 0.7)}
    users = random.choice((None, True, False))
    return {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {**spec, "hostNetwork": maybe(random, 0.5), **({} if users is None else {"hostUsers": users})},
    }


def _found(random: Random) -> Any:
    """What a runtime and the volume and eviction managers know; volumes None: they do not yet."""
    handlers = ({"name": "", "mounts": True, "users": True}, {"name": "runsc", "mounts": False, "users": True})
    return {
        "images": [_image(random, n) for n in range(random.choice((0, 1, 3, 3, 60)))],
        "handlers": [handler for handler in handlers if maybe(random, 0.5)],
        "volumes": random.choice((None, [], ["kubernetes.io/csi/a"], ["kubernetes.io/csi/a", "kubernetes.io/nfs/b"])),
        "groups": random.choice((None, None, True, False)),
        "pressures": [kind for kind in CONDITIONS[1:4] if maybe(random, 0.3)],
    }


def _image(random: Random, number: int) -> Any:
    return {
        "id": f"sha256:{random.choice('abc')}{number}",
        "size": random.choice((0, 7, 7, 1000, random.randint(1, 10**9))),
        "digests": [f"r/i{number}@sha256:{n}" for n in range(random.choice((0, 1, 4)))],
        "tags": [f"r/i{number}:{n}" for n in range(random.choice((0, 1, 4)))],
    }


def _node(random: Random, wall: float) -> Any:
    """One that somebody else has written."""
    labels = {k: random.choice(of) for k, of in LABELS.items() if maybe(random, 0.6)}
    capacity = {k: random.choice(of) for k, of in CAPACITY.items() if maybe(random, 0.5)}
    allocatable = {k: random.choice(of) for k, of in CAPACITY.items() if maybe(random, 0.5)}
    annotations = {ATTACHES: random.choice(("true", "true", ""))} if maybe(random, 0.3) else {}
    resources = {"capacity": {"pods": "110", **capacity}, "allocatable": {"pods": "110", **allocatable}}
    return {
        "metadata": {"name": NAME, "uid": "uid", "labels": labels, "annotations": {"theirs": "x", **annotations}},
        "status": {
            "addresses": [{"type": t, "address": a} for t, a in ADDRESSES if maybe(random, 0.5)],
            **{kind: amounts for kind, amounts in resources.items() if maybe(random, 0.9)},
            "conditions": [_condition(random, kind, wall) for kind in CONDITIONS if maybe(random, 0.7)],
            "nodeInfo": {"machineID": "machine", "kernelVersion": random.choice(("6.1", "6.0"))},
            **_of_runtime(random),
        },
    }


def _of_runtime(random: Random) -> Any:
    """What an earlier kubelet has left."""
    left = {
        "images": [{"names": ["old"], "sizeBytes": 5}],
        "runtimeHandlers": [{"name": "old", "features": {"userNamespaces": True}}],
        "volumesInUse": ["kubernetes.io/csi/old"],
        "features": {"supplementalGroupsPolicy": random.choice((True, False))},
        "declaredFeatures": ["Old"],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
    }
    return {key: value for key, value in left.items() if maybe(random, 0.3)}


def _condition(random: Random, kind: str, wall: float) -> Any:
    at = format_time(wall - random.choice((0, 1, 400)))
    reasons = ("KubeletReady", "KubeletNotReady", "NodeStatusUnknown", "")
    condition = {"type": kind, "status": random.choice(("True", "False", "Unknown")), "reason": random.choice(reasons)}
    if condition["reason"]:
        condition["message"] = random.choice(("kubelet is posting ready status", "said so"))
    return {**condition, "lastHeartbeatTime": at, "lastTransitionTime": at if maybe(random, 0.9) else None}


class _Scene:
    """A NodeClient over what the steps say is there and goes wrong."""

    def __init__(self, history: History, semantics: Semantics) -> None:
        self.steps, self.now = history["steps"], history["steps"][0]
        self.pods = [parse_pod(msgspec.json.encode(pod)) for pod in history["asked"]]
        self.node: Any = None
        self.faults: dict[str, list[str]] = {}
        self.patches, self.looks = 0, 0
        self.readiness = Readiness()
        self.features = (history["declared"] or []) if semantics.node_declared_features else None
        facts = NodeFacts(
            NAME,
            history["address"],
            _capacity(history),
            history["labels"],
            Machine("amd64", "6.1", "os", history["machine"], "boot", history["swap"], history["soft"]),
            "v1.36.3",
            None if history["declared"] is None or not semantics.node_declared_features else tuple(history["declared"]),
            history["attaches"],
            history["port"],
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
            self.faults, self.patches, self.looks = {k: list(v) for k, v in step["faults"].items()}, 0, 0
            said = self._played()
            # Where nothing was written it is as the history made it.
            written = self.node if self.patches or not answers else None
            answers.append({"said": said, "writes": self.patches, "node": written})
        refusals = [refusal(pod, 0, 1, self.features) for pod in self.pods]
        return [*answers, {"refused": [one and [one.reason, one.text] for one in refusals]}]

    def _errors(self) -> list[str]:
        wall, causes = self.now["wall"], self.now["causes"]
        others = other_causes(events_unhealthy=causes.get("pleg", ""), pods_healthy=True)
        told = {kind: [causes[kind]] for kind in ("storage", "shutdown") if kind in causes}
        runtime = self.readiness.runtime_errors(wall, others)
        return in_order(runtime=runtime, network=self.readiness.network_errors(), **told)

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

    def get(self, path: str) -> bytes:
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


def _capacity(history: History) -> dict[str, str]:
    """Of the machine."""
    found = {"cpu": str(history["cpu"]), "memory": str(history["memory"]), "pods": str(history["pods"])}
    found |= dict(huge_pages(int(size), pages) for size, pages in history["huge"].items())
    return {**found, **({"ephemeral-storage": str(history["storage"])} if history["storage"] else {})}


def _read_found(given: Any) -> Found:
    if given is None:
        return NOTHING
    return Found(
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
    metadata, status = node.get("metadata", {}), node.get("status", {})
    return {
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
