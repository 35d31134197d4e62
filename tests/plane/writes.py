"""Writes by chance against the policies of the playbooks, and what each of them is to be told (pure).

The oracle is a table of its own: for each change of an object whether it is one that agent or extender are there for.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from extender.outlets.kick import ANNOTATION_KICK
from kube import contract
from tools.testbed.shared.bare import pod_spec

NS, AGENT, EXTENDER = contract.NAMESPACE, contract.NAME_AGENT, contract.NAME_EXTENDER
KIND = contract.CONDITION_NODE_HEALTHY
Actor = Literal["agent", "agent without a pod", "extender's pod", "extender's host", "tenant", "deployer"]
ELSEWHERE = "default"


@dataclass(frozen=True)
class Write:
    """allowed: by RBAC and the policies together. A dry run, but where there is none (entering a pod)."""

    actor: Actor
    method: str
    path: str
    body: dict[str, Any]
    allowed: bool

    def __str__(self) -> str:
        return f"{self.actor}: {self.method} {self.path} {self.body}"


@dataclass(frozen=True)
class Change:
    """ours: whether it is what the one who is confined is there for, or changes nothing at all."""

    body: dict[str, Any]
    ours: bool


def condition(kind: str, status: str, **more: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": status, **more}]}}


POD_STATUS = (
    Change(condition(KIND, "True", reason="ChecksPassed"), ours=True),
    Change(condition(KIND, "False", reason="ChecksFailed", message="disk"), ours=True),
    Change(condition(KIND, "Unknown"), ours=True),
    Change(condition("Ready", "Unknown", message="x"), ours=False),
    Change(condition("ContainersReady", "Unknown"), ours=False),
    Change(condition("example.com/Other", "True"), ours=False),
    Change({"status": {"conditions": [{"type": "Initialized", "$patch": "delete"}]}}, ours=False),
    Change({"status": {"podIP": "192.0.2.66"}}, ours=False),
    Change({"status": {"phase": "Failed"}}, ours=False),
    Change({"status": {"reason": "Evicted"}}, ours=False),
    Change({"status": {"message": "x"}}, ours=False),
    Change({"status": {"startTime": "2026-01-02T00:00:00Z"}}, ours=False),
    Change({"metadata": {"labels": {"a": "b"}}}, ours=False),
    Change({"metadata": {"annotations": {"a": "b"}}}, ours=False),
)
NODE = (
    Change({"metadata": {"annotations": {ANNOTATION_KICK: "1"}}}, ours=True),
    Change({"metadata": {"annotations": {ANNOTATION_KICK: None}}}, ours=True),
    Change({"metadata": {"annotations": {"a": "b"}}}, ours=False),
    Change({"metadata": {"annotations": {"there": None}}}, ours=False),
    Change({"metadata": {"annotations": {"there": "other"}}}, ours=False),
    Change({"metadata": {"labels": {"a": "b"}}}, ours=False),
    Change({"metadata": {"labels": {"kubernetes.io/os": None}}}, ours=False),
    Change({"metadata": {"finalizers": ["example.com/x"]}}, ours=False),
    Change({"spec": {"unschedulable": True}}, ours=False),
    Change({"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}, ours=False),
    Change({"spec": {"providerID": "x://y"}}, ours=False),
)
NODE_STATUS = (
    Change(condition(KIND, "True", reason="Healthy"), ours=True),
    Change(condition(KIND, "False", reason="Unhealthy", message="m"), ours=True),
    Change({"status": {"conditions": [{"type": KIND, "$patch": "delete"}]}}, ours=True),
    Change(condition("Ready", "False"), ours=False),
    Change(condition("example.com/Other", "True"), ours=False),
    Change({"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}}, ours=False),
    Change({"status": {"allocatable": {"cpu": "1000"}}}, ours=False),
    Change({"status": {"capacity": {"example.com/gpu": "8"}}}, ours=False),
    Change({"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.66"}]}}, ours=False),
    Change({"metadata": {"labels": {"a": "b"}}}, ours=False),
    Change({"metadata": {"annotations": {"a": "b"}}}, ours=False),
)
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "registry.invalid/none:1"}]},
}
CONTROLLED = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
JOB = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
TOKEN_OF = {"type": "kubernetes.io/service-account-token"}
OF_EXTENDER = {"annotations": {"kubernetes.io/service-account.name": EXTENDER}}
# What makes a pod run, gives a token or a shell, or commands to the agent: path below the namespace, body.
RUNS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("/api/v1", "pods", {"spec": TEMPLATE["spec"] | {"serviceAccountName": "default"}}),
    ("/api/v1", "pods", {"spec": TEMPLATE["spec"]}),
    ("/api/v1", "replicationcontrollers", {"spec": {"selector": {"a": "b"}, "template": TEMPLATE}}),
    ("/apis/apps/v1", "daemonsets", {"spec": CONTROLLED}),
    ("/apis/apps/v1", "deployments", {"spec": CONTROLLED}),
    ("/apis/apps/v1", "replicasets", {"spec": CONTROLLED}),
    ("/apis/apps/v1", "statefulsets", {"spec": CONTROLLED | {"serviceName": "s"}}),
    ("/apis/batch/v1", "jobs", {"spec": JOB}),
    ("/apis/batch/v1", "cronjobs", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": JOB}}}),
    ("/api/v1", "serviceaccounts/readygate-tried/token", {"spec": {}}),
    ("/api/v1", "secrets", TOKEN_OF | {"metadata": OF_EXTENDER}),
    ("/api/v1", "configmaps", {"metadata": {"name": f"{AGENT}-6c0c37a8b1"}, "data": {"agent.yaml": "checks: []"}}),
    ("/api/v1", "configmaps", {"metadata": {"name": f"{EXTENDER}-08d4af506a"}, "data": {"extender.yaml": ""}}),
)
# These run nothing: anybody who may, may.
RUNS_NOTHING: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("/api/v1", "configmaps", {"data": {"a": "b"}}),
    ("/api/v1", "secrets", {"stringData": {"a": "b"}}),
)
# A pod may get more of them, and loses none: a list stands for all.
TOLERATED = pod_spec()["tolerations"]
# Of a pod that is there, by part. ours: it runs what it ran.
POD = (
    ("", Change({"metadata": {"labels": {"a": "b"}}}, ours=True)),
    ("", Change({"metadata": {"annotations": {"a": "b"}}}, ours=True)),
    ("", Change({"spec": {"containers": [{"name": "main", "image": "registry.invalid/other:1"}]}}, ours=False)),
    ("", Change({"spec": {"activeDeadlineSeconds": 1}}, ours=False)),
    ("", Change({"spec": {"tolerations": [*TOLERATED, {"key": "a", "operator": "Exists"}]}}, ours=False)),
    ("/ephemeralcontainers", Change({"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}, ours=False)),
)


def joined(changes: Sequence[Change]) -> dict[str, Any]:
    """Their bodies in one, conditions one after the other."""

    def join(one: Any, other: Any) -> Any:
        if isinstance(one, dict) and isinstance(other, dict):
            return {**one, **{key: join(one[key], other[key]) if key in one else other[key] for key in other}}
        return one + other if isinstance(one, list) and isinstance(other, list) else other

    body: dict[str, Any] = {}
    for change in changes:
        body = join(body, change.body)
    return body


def drawn(chance: random.Random, changes: Sequence[Change]) -> tuple[dict[str, Any], bool]:
    """A body of one to three changes of different things, and whether all are ours. Half of all are."""
    among = [change for change in changes if change.ours] if chance.random() < 0.5 else list(changes)
    taken: list[Change] = []
    touched: set[str] = set()
    for change in chance.sample(among, min(len(among), chance.randint(1, 3))):
        what = thing(change.body)
        if what not in touched:
            touched.add(what)
            taken.append(change)
    return joined(taken), all(change.ours for change in taken)


def thing(value: Any) -> str:
    """What a change is of, so that two of the same are not joined."""
    if isinstance(value, list):
        return str(value[0].get("type", "")) if isinstance(value[0], dict) else ""
    if isinstance(value, dict):
        (key,) = list(value)[:1]
        return f"{key}.{thing(value[key])}"
    return ""


def write_of_a_pod(chance: random.Random, own: str, other: str) -> Write:
    body, ours = drawn(chance, POD_STATUS)
    actor: Actor = chance.choice(["agent", "agent", "agent", "agent without a pod", "extender's host", "tenant"])
    target = chance.choice([own, own, own, other])
    allowed = actor == "tenant" or (actor == "agent" and target == own and ours)
    return Write(actor, "PATCH", f"/api/v1/namespaces/{NS}/pods/{target}/status", body, allowed)


def write_of_a_node(chance: random.Random, node: str) -> Write:
    part, changes = chance.choice([("", NODE), ("/status", NODE_STATUS)])
    body, ours = drawn(chance, changes)
    actor: Actor = chance.choice(
        ["extender's pod", "extender's host", "extender's pod", "extender's host", "agent", "tenant"]
    )
    allowed = actor == "tenant" or (actor.startswith("extender") and ours)
    return Write(actor, "PATCH", f"/api/v1/nodes/{node}{part}", body, allowed)


def write_that_runs(chance: random.Random, number: int, pod: str) -> Write:
    actor: Actor = chance.choice(["tenant", "tenant", "deployer", "extender's host", "agent"])
    namespace = chance.choice([NS, NS, ELSEWHERE])
    confined = actor == "tenant" and namespace == NS
    may = actor in ("tenant", "deployer")
    kind = chance.random()
    if kind < 0.15:
        return Write(
            actor, "POST", f"/api/v1/namespaces/{NS}/pods/{pod}/exec?command=id", {}, may and actor != "tenant"
        )
    if kind < 0.4:
        part, change = chance.choice(POD)
        allowed = may and (actor != "tenant" or change.ours)
        return Write(actor, "PATCH", f"/api/v1/namespaces/{NS}/pods/{pod}{part}", change.body, allowed)
    taken = base, resource, body = chance.choice((*RUNS, *RUNS_NOTHING))
    if not resource.startswith("serviceaccounts"):
        body = {**body, "metadata": {"name": f"tried-{number}", **body.get("metadata", {})}}
    allowed = may and (not confined or taken in RUNS_NOTHING)
    return Write(actor, "POST", f"{base}/namespaces/{namespace}/{resource}", body, allowed)


def writes(chance: random.Random, number: int, *, own: str, other: str, node: str) -> list[Write]:
    """As many, a third of each kind."""
    return [
        (
            write_of_a_pod(chance, own, other),
            write_of_a_node(chance, node),
            write_that_runs(chance, place, own),
        )[place % 3]
        for place in range(number)
    ]
