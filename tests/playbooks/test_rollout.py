"""What the playbooks make of a roll-out: waits, done or failed, by what is seen of the DaemonSet. Tables."""

import ast
from typing import Any

import pytest
from readygate_objects.rollout import (
    GRACE_S,
    Look,
    Pod,
    judge,
    limit_s,
    nodes_of,
    pod_of,
    previous,
    restored,
)

from tests.playbooks.rendering import ROLES

OLD, NEW = "old", "new"
WELL = {"ready": True}
PULL = {"kind": "ErrImagePull", "cause": "ErrImagePull: no such host"}
CRASH = {"kind": "CrashLoopBackOff", "cause": "it ends with code 2: checks[0].name: missing"}
CLOSED = {"kind": "Closed", "cause": "closed: cni: no plugin"}


def pods(*groups: tuple[int, str, dict[str, Any]]) -> list[Pod]:
    """So many of each revision and state, on node-1, node-2, ..."""
    told = [(revision, state) for count, revision, state in groups for _ in range(count)]
    return [Pod(f"node-{number}", revision, **state) for number, (revision, state) in enumerate(told, 1)]


def look(*groups: tuple[int, str, dict[str, Any]], **more: Any) -> Look:
    found = pods(*groups)
    defaults = {"desired": len(found), "available": sum(pod.ready for pod in found), "batch": "10%", "min_ready_s": 60}
    return Look(more.pop("revision", NEW), pods=found, **(defaults | more))


def told(seen: Look, *, for_s: float = 0.0, already: tuple[str, ...] = (), limit: float = 3000.0) -> Any:
    """The verdict on what has been seen for so long."""
    memory: dict[str, Any] = {"already": list(already)}
    judge(seen, memory, 70, limit, 100.0)
    return judge(seen, memory, 70, limit, 100.0 + for_s)


LOOKS = [
    pytest.param(look((3, NEW, WELL)), {}, "done", "3 of 3 nodes", id="every node has it and is available"),
    pytest.param(look((3, NEW, WELL), available=2), {}, "waits", "", id="one is Ready, but not for minReadySeconds"),
    pytest.param(look((3, NEW, WELL), available=0, first=True), {}, "done", "", id="no batch follows the first"),
    pytest.param(look((2, NEW, WELL), (1, NEW, {}), first=True), {}, "waits", "2 of them", id="of which each is Ready"),
    pytest.param(look((3, NEW, WELL), revision=""), {}, "waits", "not observed", id="before the controller looks"),
    pytest.param(
        look((3, NEW, WELL), revision=""), {"for_s": 301}, "failed", "kube-controller-manager", id="it never does"
    ),
    pytest.param(look((9, NEW, WELL), (1, OLD, WELL)), {}, "waits", "9 of 10", id="one has the old version"),
    pytest.param(
        look((9, NEW, WELL), (1, OLD, WELL)), {"for_s": 361}, "failed", "node-10", id="nothing moves for five minutes"
    ),
    pytest.param(
        look((9, NEW, WELL), (1, OLD, {}), dead=frozenset({"node-10"})),
        {},
        "done",
        "node-10 (dead)",
        id="a dead node is not waited for",
    ),
    pytest.param(
        look((2, NEW, WELL), (1, OLD, {"ending": True}), dead=frozenset({"node-3"})),
        {},
        "done",
        "node-3 (dead)",
        id="nor is one of three, whose old pod cannot end",
    ),
    pytest.param(
        look((9, NEW, WELL), (1, NEW, CLOSED)),
        {"already": ("node-10",), "for_s": 90},
        "done",
        "node-10 (not Ready before)",
        id="nor one that was closed before",
    ),
    pytest.param(
        look((8, NEW, WELL), (1, NEW, PULL), (1, OLD, WELL)), {"for_s": 19}, "waits", "", id="a pull may fail"
    ),
    pytest.param(
        look((8, NEW, WELL), (1, NEW, PULL), (1, OLD, WELL)),
        {"for_s": 21},
        "failed",
        "node-9: ErrImagePull: no such host",
        id="a pull that goes on failing fills the batch of ten nodes",
    ),
    pytest.param(
        look((1, NEW, PULL), (99, OLD, WELL)), {"for_s": 200}, "waits", "no such host", id="not that of a hundred"
    ),
    pytest.param(
        look((10, NEW, CRASH), (90, OLD, WELL)), {}, "failed", "checks[0].name", id="a batch crashes: at once"
    ),
    pytest.param(
        look((99, NEW, WELL), (1, NEW, CRASH)),
        {"for_s": 91},
        "done",
        "node-100",
        id="one of a hundred crashes in the end",
    ),
    pytest.param(
        look((7, NEW, WELL), (3, NEW, CLOSED)), {"for_s": 91}, "done", "no plugin", id="closed, but enough are well"
    ),
    pytest.param(
        look((6, NEW, WELL), (4, NEW, CLOSED)), {"for_s": 61}, "failed", "no plugin", id="too many are closed"
    ),
    pytest.param(
        look((1, NEW, CLOSED), (9, OLD, WELL)), {"for_s": 61}, "failed", "no plugin", id="the first batch turns bad"
    ),
    pytest.param(
        look(desired=3, refused="violates PodSecurity"),
        {"for_s": 16},
        "failed",
        "3 pods cannot be created: violates",
        id="refused",
    ),
    pytest.param(look(desired=3, refused="timeout"), {"for_s": 5}, "waits", "timeout", id="refused for a moment"),
    pytest.param(look(), {"for_s": 31}, "failed", "it may run on no node", id="no node fits"),
    pytest.param(
        look((5, NEW, WELL), (5, OLD, WELL)), {"for_s": 60, "limit": 50}, "failed", "longer than 50 s", id="too late"
    ),
]


@pytest.mark.parametrize(("seen", "given", "state", "words"), LOOKS)
def test_a_roll_out_waits_ends_well_or_fails_with_its_cause(seen, given, state, words):
    verdict = told(seen, **given)
    assert (verdict.state, True) == (state, words in verdict.text), verdict


@pytest.mark.parametrize(
    ("seen", "already", "expected"),
    [
        pytest.param(look((10, OLD, WELL)), (), 1, id="10 % of ten"),
        pytest.param(look((25, OLD, WELL)), (), 3, id="rounded up, as the controller does"),
        pytest.param(look((8, OLD, WELL), (2, OLD, {})), ("node-9", "node-10"), 3, id="beside two that were not well"),
        pytest.param(look((9, OLD, WELL), (1, OLD, {}), dead=frozenset({"node-10"})), (), 2, id="and one that is dead"),
        pytest.param(
            look((1, NEW, {}), (9, OLD, WELL)), (), 1, id="one that the new version made unwell counts against it"
        ),
        pytest.param(
            look((1, NEW, WELL), (9, OLD, WELL)), ("node-1",), 1, id="one that was unwell and is well again counts"
        ),
        pytest.param(look((10, NEW, {})), (), None, id="nothing is left to replace"),
    ],
)
def test_nodes_that_were_not_well_before_take_nothing_of_the_batch(seen, already, expected):
    assert expected == told(seen, already=already).max_unavailable


def test_the_clock_of_a_cause_begins_anew_when_it_goes():
    memory: dict[str, Any] = {"already": []}
    failing, well = look((1, NEW, PULL), (2, NEW, WELL)), look((3, NEW, WELL), available=2)
    seen = [(failing, 0.0), (well, 15.0), (failing, 18.0), (failing, 30.0), (failing, 39.0)]
    states = [judge(each, memory, 70, 3000.0, monotonic).state for each, monotonic in seen]
    assert states == ["waits"] * 4 + ["failed"]


@pytest.mark.parametrize(
    ("nodes", "expected"), [(1, 450.5), (3, 661.5), (100, 1550.0), (5000, 4000.0)], ids=lambda value: str(value)
)
def test_the_time_limit_grows_with_the_nodes(nodes, expected):
    assert expected == limit_s(0, nodes, "10%", 60) + (0 if nodes != 1 else 30)


def test_a_limit_that_is_given_holds():
    assert limit_s(77, 5000, "10%", 60) == 77


@pytest.mark.parametrize(("batch", "desired", "expected"), [("10%", 3, 1), ("10%", 11, 2), (3, 100, 3), ("5", 9, 5)])
def test_a_batch_is_rounded_as_the_controller_does(batch, desired, expected):
    assert expected == nodes_of(batch, desired)


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {
        "containerStatuses": [{"name": "agent", "state": {"waiting": {"reason": reason, "message": message}}, **more}]
    }


ENDED = {"terminated": {"exitCode": 2, "message": "reading\nagent.yaml: moode: unknown key"}}
UNHEALTHY = {"type": "readygate.dev/NodeHealthy", "status": "False", "reason": "CheckFailed", "message": "cni: gone"}
MOUNT = (
    "FailedMount",
    'MountVolume.SetUp failed for volume "host-2" : hostPath type check failed: /opt/cni/bin is not a',
)


@pytest.mark.parametrize(
    ("status", "event", "kind", "cause"),
    [
        pytest.param({"conditions": [{"type": "Ready", "status": "True"}]}, None, "", "", id="Ready"),
        pytest.param(
            waiting("ErrImagePull", "no such host"), None, "ErrImagePull", "ErrImagePull: no such host", id="pull"
        ),
        pytest.param(
            waiting("CrashLoopBackOff", "back-off 10s", lastState=ENDED, restartCount=3),
            None,
            "CrashLoopBackOff",
            "it ends with code 2: agent.yaml: moode: unknown key",
            id="a crash is told by the agent's last words",
        ),
        pytest.param({"conditions": [UNHEALTHY]}, None, "Closed", "closed: cni: gone", id="closed by its own check"),
        pytest.param(
            waiting("ContainerCreating"), MOUNT, "FailedMount", "FailedMount: " + MOUNT[1], id="a folder lacks"
        ),
        pytest.param(
            waiting("ContainerCreating"),
            ("FailedCreatePodSandBox", "cni"),
            "Event",
            "FailedCreatePodSandBox: cni",
            id="no sandbox",
        ),
        pytest.param(waiting("ContainerCreating"), None, "", "", id="it is being made"),
        pytest.param(
            {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}]},
            None,
            "Unscheduled",
            "not placed: 0/3 nodes",
            id="not placed",
        ),
    ],
)
def test_why_a_pod_is_not_ready(status, event, kind, cause):
    pod = {"metadata": {"name": "a-1"}, "spec": {"nodeName": "node-1"}, "status": status}
    seen = pod_of(pod, {"a-1": event} if event else {})
    assert (seen.node, seen.kind, seen.cause) == ("node-1", kind, cause)


def test_a_pod_that_is_not_placed_yet_is_for_the_node_that_the_controller_meant():
    fields = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-7"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": fields}}}
    assert pod_of({"metadata": {"name": "a-1"}, "spec": {"affinity": affinity}}, {}).node == "node-7"


def revision(number: int, name: str) -> dict[str, Any]:
    template = {"$patch": "replace", "metadata": {}, "spec": {"containers": [{"image": name}]}}
    labels = {"controller-revision-hash": name}
    return {"revision": number, "metadata": {"labels": labels}, "data": {"spec": {"template": template}}}


@pytest.mark.parametrize(
    ("revisions", "found", "expected"),
    [
        pytest.param([revision(1, NEW)], [], None, id="a first version has none before it"),
        pytest.param([revision(2, NEW), revision(1, OLD)], [], OLD, id="the one before"),
        pytest.param(
            [revision(1, OLD), revision(2, "broken"), revision(3, NEW)],
            pods((8, OLD, WELL), (1, "broken", {}), (1, NEW, {})),
            OLD,
            id="that of the most agents that are well, not a broken one between",
        ),
    ],
)
def test_a_roll_out_is_taken_back_to_what_was_well(revisions, found, expected):
    image = previous(revisions, found)
    assert expected == (image["data"]["spec"]["template"]["spec"]["containers"][0]["image"] if image else None)


def test_what_is_taken_back_is_the_pods_alone():
    live = {
        "metadata": {
            "name": "a",
            "namespace": "n",
            "labels": {},
            "uid": "u",
            "resourceVersion": "7",
            "managedFields": [],
        },
        "spec": {"minReadySeconds": 60, "template": {"spec": {"containers": [{"image": NEW}]}}},
        "status": {"desiredNumberScheduled": 3},
    }
    template = {"metadata": {}, "spec": {"containers": [{"image": OLD}]}}
    assert restored(live, revision(1, OLD)) == {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "a", "namespace": "n", "labels": {}},
        "spec": {"minReadySeconds": 60, "template": template},
    }


def test_every_cause_that_is_waited_for_has_a_limit():
    assert {kind for kind, grace_s in GRACE_S.items() if grace_s > 60} == set()


@pytest.mark.parametrize(
    "file",
    [*ROLES.glob("*/library/*.py"), *ROLES.glob("readygate_objects/module_utils/*/*.py")],
    ids=lambda file: f"{file.parent.parent.name}/{file.name}",
)
def test_what_runs_on_the_hosts_is_python_3_6(file):
    ast.parse(file.read_text(), feature_version=(3, 6))
