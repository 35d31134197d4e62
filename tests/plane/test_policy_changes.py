"""Agent and extender may change one entry of a Pod or Node, whatever form their write has.

Hundreds of writes are drawn, thousands in the whole proof. An administrator tries each one first: what the API server
would make of it is judged by `harm.harm_of`. Then the confined identity tries it. Both are dry runs. RBAC lets the
identities write everything there, so it is the policies that refuse.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from kube import contract
from tests.plane import changes
from tests.plane.changes import APPLY, OWNER_OF_FOREIGN, Request
from tests.plane.cluster import Cluster
from tests.plane.confined import Confined, grant
from tests.plane.harm import Target, harm_of
from tests.plane.writes import NS
from tools.kit.scope import draws
from tools.kit.waiting import wait_until
from tools.testbed.plane import identities
from tools.testbed.shared import bare
from tools.testbed.shared.api import Api, ApiError, Object

WRITES = draws(gate=300, whole=2500)
THREADS = 6
AGENT, HOST, POD = "agent", "extender's host", "extender's pod"
MESSAGE_OF_AGENT, MESSAGE_OF_EXTENDER = 1024, 400
NODE_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
TTL = "node.alpha.kubernetes.io/ttl"  # what the controllers write last into a new Node
POD_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


@dataclass(frozen=True)
class Result:
    """What came of a request. harm: by the oracle. refusal: the words of the policy, "" if the write was taken."""

    request: Request
    harm: list[str]
    refusal: str


def entries(kinds: tuple[str, ...]) -> list[Object]:
    return [
        {"type": kind, "status": "True", "reason": f"R{kind}", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind in kinds
    ]


def annotations(cluster: Cluster, path: str) -> Object:
    return cluster.api.get(path)["metadata"].get("annotations", {})


def conditions(cluster: Cluster, path: str, kinds: tuple[str, ...], *, own: bool) -> None:
    """Writes the others' conditions by server-side apply, so that their manager may take them away. own: ours, too."""
    kind, name = ("Pod" if "/pods/" in path else "Node"), path.rpartition("/")[2]
    body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "status": {"conditions": entries(kinds)}}
    query = f"?fieldManager={OWNER_OF_FOREIGN}&force=true"
    cluster.api.request("PATCH", f"{path}/status{query}", body, content_type=APPLY)
    if own:
        mine = entries((contract.CONDITION_NODE_HEALTHY,))
        cluster.api.patch(f"{path}/status", {"status": {"conditions": mine}})


@pytest.fixture(scope="module")
def cluster(policed: Cluster) -> Cluster:
    return policed


@pytest.fixture
def targets(confined: Confined, cluster: Cluster) -> Iterator[list[Target]]:
    """A pod of the agent and three nodes: with our condition, without it, and with 60 of others."""
    made: list[str] = []
    pods = [{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["*"]}]
    nodes = [{"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["*"]}]
    grant(cluster, "tried-wide-agent", identities.AGENT, pods, made)
    grant(cluster, "tried-wide-extender", identities.EXTENDER, nodes, made)
    pod = f"/api/v1/namespaces/{NS}/pods/{confined.own}"
    conditions(cluster, pod, POD_CONDITIONS, own=True)
    found = [Target(pod, "/status", (AGENT,), MESSAGE_OF_AGENT, cluster.api.get(pod))] * 3
    many = tuple(f"example.com/Condition{number}" for number in range(55))
    for name, kinds, own in zip(
        (confined.node, "changes-without", "changes-many"),
        (NODE_CONDITIONS, NODE_CONDITIONS, (*NODE_CONDITIONS, *many)),
        (True, False, True),
        strict=True,
    ):
        path = f"/api/v1/nodes/{name}"
        if name != confined.node:
            bare.add_node(cluster.api, name)
            made.append(path)
        conditions(cluster, path, kinds, own=own)
        wait_until(lambda path=path: TTL in annotations(cluster, path), "the controllers have written", timeout_s=30)
        before = cluster.api.get(path)
        found += [Target(path, part, (HOST, POD), MESSAGE_OF_EXTENDER, before) for part in ("/status", "/status", "")]
    try:
        yield found
    finally:
        for path in reversed(made):
            cluster.api.delete(path)


def sent(api: Api, request: Request) -> Object:
    """The object as it would be. Raises ApiError."""
    target = request.target
    path = f"{target.path}{target.part}?dryRun=All{request.query}"
    method = "PUT" if request.form == "PUT" else "PATCH"
    return api.request(method, path, request.body, content_type=changes.media_type(request.form))


def tried(confined: Confined, admin: Api, request: Request) -> Result | None:
    """None for a write that the API server takes from nobody: it is not valid."""
    try:
        harm = harm_of(request.target, sent(admin, request))
    except ApiError as e:
        if e.status == 0:
            raise
        harm = None
    try:
        after = sent(confined.actors[request.actor], request)
    except ApiError as e:
        if e.status not in (400, 409, 422, 500):
            raise
        return None if harm is None else Result(request, harm, e.message)
    return Result(request, harm_of(request.target, after), "")


def shown(results: list[Result]) -> list[str]:
    """The shortest first."""
    texts = [f"{one.request} -> {one.harm or one.refusal}" for one in results]
    return [text[:2000] for text in sorted(texts, key=len)[:10]]


def test_agent_and_extender_change_nothing_but_their_one_entry(confined, cluster, targets, seed, artefacts):
    drawn = changes.requests(random.Random(seed), WRITES, targets)
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda request: tried(confined, cluster.api, request), drawn))
    results = [one for one in found if one is not None]
    allowed = [one for one in results if one.harm and not one.refusal]
    denied = [one for one in results if one.refusal and not one.harm]
    figures = Counter(f"{one.request.form}, {'harmful' if one.harm else 'right'}" for one in results)
    causes = Counter(cause for one in results for cause in one.harm)
    table = {
        "seed": seed,
        "writes": len(drawn),
        "not valid": len(drawn) - len(results),
        **dict(sorted(figures.items())),
        "differences": dict(sorted(causes.items())),
        "wrong allows": len(allowed),
        "wrong denies": len(denied),
        "examples": [shown(allowed), shown(denied)],
    }
    (artefacts / "policy_changes.json").write_text(json.dumps(table, indent=2) + "\n")
    assert ([], []) == (shown(allowed), shown(denied)), f"seed {seed}: {len(allowed)} allowed, {len(denied)} denied"
    assert len(results) >= 0.8 * WRITES
    assert min(figures[f"{form}, harmful"] for form in changes.FORMS) > WRITES / 50
    assert min(figures[f"{form}, right"] for form in changes.FORMS if form != APPLY) > WRITES / 50


def test_objects_with_900_conditions_stay_within_the_cost_that_policies_may_have(confined, cluster, targets):
    """Kubernetes bounds the cost of a policy's expressions. One that exceeds it refuses every write."""
    many = tuple(f"example.com/Condition{number}" for number in range(900))
    for actor, path in ((AGENT, targets[0].path), (HOST, targets[-1].path)):
        conditions(cluster, path, (*many, "Ready"), own=True)
        own = changes.condition(random.Random(0))
        patch = {"status": {"conditions": [own]}}
        after = confined.actors[actor].patch(f"{path}/status?dryRun=All", patch)
        assert len(after["status"]["conditions"]) > len(many)
        with pytest.raises(ApiError, match="may not touch the conditions of others"):
            confined.actors[actor].patch(f"{path}/status?dryRun=All", {"status": {"conditions": entries(("Other",))}})
