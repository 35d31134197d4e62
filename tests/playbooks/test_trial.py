"""The pod in which a new image reads its new configuration before any agent, or the extender, is touched."""

import json
from functools import cache
from typing import Any

import pytest
from readygate_objects.trial import LABELS, outcome, trial_nodes, trial_pod, turned_away

from kube import contract
from tests.playbooks.modules import module
from tests.playbooks.rendering import ADMIN_SERVER, named, objects, plain, render

KEY = ("DaemonSet", contract.NAMESPACE, contract.NAME_AGENT)


@cache
def daemon_set() -> dict[str, Any]:
    return plain(objects("readygate_agent", {})[KEY])


def node(
    name: str, arch: str = "amd64", *, ready: str = "True", cordoned: bool = False, **labels: str
) -> dict[str, Any]:
    known = {"kubernetes.io/os": "linux", "kubernetes.io/arch": arch, **labels}
    return {
        "metadata": {"name": name, "labels": known},
        "spec": {"unschedulable": cordoned},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


@pytest.mark.parametrize(
    ("nodes", "selector", "expected"),
    [
        pytest.param(
            [node("a"), node("b"), node("c", "arm64")], {}, {"amd64": "a", "arm64": "c"}, id="one of each kind"
        ),
        pytest.param([node("a", ready="Unknown"), node("b")], {}, {"amd64": "b"}, id="none that is dead"),
        pytest.param([node("a", cordoned=True), node("b")], {}, {"amd64": "b"}, id="better one that is not cordoned"),
        pytest.param([node("a", cordoned=True)], {}, {"amd64": "a"}, id="but for want of another"),
        pytest.param([node("a", "s390x")], {}, {}, id="none that the image is not for"),
        pytest.param(
            [node("a"), node("b", pool="gpu")], {"pool": "gpu"}, {"amd64": "b"}, id="of the pool that is wanted"
        ),
    ],
)
def test_where_it_is_tried(nodes, selector, expected):
    selected = plain(objects("readygate_agent", {"readygate_agent_node_selector": selector})[KEY])
    assert expected == trial_nodes(selected, nodes)


def test_the_pod_is_an_agents_but_for_what_makes_it_one():
    """The same image, configuration, folders and user; it answers nobody, is nobody's health pod, and ends."""
    agent, pod = daemon_set()["spec"]["template"]["spec"], trial_pod(daemon_set(), "node-1", "amd64", 90)
    spec = pod["spec"]
    (mine,), (theirs,) = spec["containers"], agent["containers"]
    assert mine["command"] == [*theirs["command"], "--check"]
    same = ("image", "volumeMounts", "securityContext", "env", "terminationMessagePolicy")
    assert [] == [key for key in same if mine[key] != theirs[key]]
    assert (spec["volumes"], spec["securityContext"]) == (agent["volumes"], agent["securityContext"])
    assert {"readinessProbe", "livenessProbe"}.isdisjoint(mine)
    assert {"readinessGates", "affinity", "serviceAccountName"}.isdisjoint(spec)
    assert (spec["nodeName"], spec["restartPolicy"], spec["activeDeadlineSeconds"]) == ("node-1", "Never", 90)
    assert not spec["automountServiceAccountToken"]
    assert pod["metadata"]["labels"] == LABELS
    assert LABELS[contract.LABEL_NAME] != contract.NAME_AGENT
    assert "command" in theirs, "what was rendered is left as it was"
    assert "--check" not in theirs["command"]


def extenders_trial(**given: Any) -> dict[str, Any]:
    given = ADMIN_SERVER | {"readygate_extender_form": "static", "readygate_extender_node_name": "node-1"} | given
    (one,) = named("readygate_extender", given, "trial").values()
    return plain(one)


@pytest.mark.parametrize(
    ("make", "limits_of"),
    [
        pytest.param(
            lambda: trial_pod(daemon_set(), "node-1", "amd64", 90),
            lambda: daemon_set()["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"],
            id="the agent's",
        ),
        pytest.param(extenders_trial, lambda: {"memory": "512Mi"}, id="the extender's"),
        pytest.param(
            lambda: extenders_trial(readygate_extender_resources={"limits": {"cpu": "1"}}),
            lambda: {"cpu": "1"},
            id="limits alone",
        ),
    ],
)
def test_nobody_is_evicted_for_a_trial(make, limits_of):
    """A kubelet evicts others for a critical pod that was sent to its full node."""
    made, limits = make(), limits_of()
    assert {"priorityClassName", "priority"}.isdisjoint(made["spec"])
    (container,) = made["spec"]["containers"]
    assert limits == container["resources"]["limits"]
    assert limits.keys() <= container["resources"]["requests"].keys(), "what is left out is as the limit"
    assert {"0"} == set(container["resources"]["requests"].values())


def pod(phase: str, **container: Any) -> dict[str, Any]:
    status = {"phase": phase, "containerStatuses": [{"name": "agent", **container}]}
    return {"metadata": {"name": "t"}, "spec": {"nodeName": "node-1"}, "status": status}


SAID = "reading\n/etc/readygate/agent.yaml: checks[0].name: missing; required here: name\n"
NO_IMAGE = {"state": {"waiting": {"reason": "ErrImagePull", "message": "no such host"}}}


@pytest.mark.parametrize(
    ("seen", "for_s", "expected"),
    [
        pytest.param(pod("Succeeded"), 0, (True, ""), id="it takes the configuration"),
        pytest.param(
            pod("Failed", state={"terminated": {"exitCode": 2, "message": SAID}}),
            0,
            (True, "/etc/readygate/agent.yaml: checks[0].name: missing; required here: name"),
            id="it does not: its last words",
        ),
        pytest.param(pod("Failed", state={}), 0, (True, "it failed"), id="it failed without a word"),
        pytest.param(pod("Pending", **NO_IMAGE), 5, (False, "ErrImagePull: no such host"), id="a pull that fails once"),
        pytest.param(pod("Pending", **NO_IMAGE), 21, (True, "ErrImagePull: no such host"), id="and goes on failing"),
        pytest.param(pod("Running", state={"running": {}}), 100, (False, ""), id="it reads"),
    ],
)
def test_what_became_of_it(seen, for_s, expected):
    memory: dict[str, Any] = {}
    outcome(seen, {}, memory, 50.0)
    assert expected == outcome(seen, {}, memory, 50.0 + for_s)


SEVERAL = pod("Failed", state={"terminated": {"message": "forbidden\nno answer\nno verdict within 20 s\n"}})


def test_of_several_lines_that_are_told_the_last_comes_first():
    assert (True, "no verdict within 20 s (before that: no answer | forbidden)") == outcome(SEVERAL, {}, {}, 1.0, 4)


def away(reason: str, message: str) -> dict[str, Any]:
    return {"phase": "Failed", "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(away("OutOfpods", "110 of 110"), "OutOfpods: 110 of 110", id="no room"),
        pytest.param(away("Evicted", "disk pressure"), "Evicted: disk pressure", id="nothing is admitted now"),
        pytest.param(away("Evicted", "memory") | {"containerStatuses": [{}]}, "", id="it ran, and was evicted then"),
        pytest.param({"phase": "Failed"}, "", id="it ran, and failed"),
        pytest.param({"phase": "Running"}, "", id="it runs"),
    ],
)
def test_where_a_kubelet_turns_it_away(status, expected):
    assert expected == turned_away({"status": status})


class Cluster:
    """kubectl of a cluster whose kubelets do as `becomes` says, by node."""

    def __init__(self, nodes: list[dict[str, Any]], becomes: dict[str, dict[str, Any]]) -> None:
        self.nodes, self.becomes = nodes, becomes
        self.pods: list[dict[str, Any]] = []
        self.tried: list[str] = []

    def get(self, kind: str, *_: str) -> dict[str, Any]:
        return {"items": {"nodes": self.nodes, "pods": self.pods}.get(kind, [])}

    def run(self, verb: str, *_: str, stdin: str = "") -> str:
        made = [json.loads(text) for text in stdin.split("\n---\n")] if verb == "create" else []
        self.pods = [one | {"status": self.becomes[one["spec"]["nodeName"]]} for one in made]
        self.tried += [one["spec"]["nodeName"] for one in made]
        return ""


WELL = {"phase": "Succeeded"}
FULL = away("OutOfpods", "110 of 110")


@pytest.mark.parametrize(
    ("nodes", "becomes", "tried", "why"),
    [
        pytest.param([node("a"), node("b")], {"a": WELL}, ["a"], "", id="one that takes it is enough"),
        pytest.param([node("a"), node("b")], {"a": FULL, "b": WELL}, ["a", "b"], "", id="a full one is passed by"),
        pytest.param([node("a"), node("b")], {"a": FULL, "b": FULL}, ["a", "b"], "on b: 110 of 110", id="all are full"),
        pytest.param(
            [node("a"), node("b", "arm64")],
            {"a": WELL, "b": FULL},
            ["a", "b"],
            "on b: 110 of 110",
            id="the only one of its kind is full",
        ),
        pytest.param(
            [node("a"), node("b")],
            {"a": {"phase": "Failed"}},
            ["a"],
            "on a: it failed",
            id="what fails is not tried on",
        ),
        pytest.param([], {}, [], "it may run on no Ready node", id="no node"),
    ],
)
def test_on_which_nodes_it_is_tried_until_one_takes_it(nodes, becomes, tried, why):
    cluster = Cluster(nodes, becomes)
    said = module("readygate_objects", "readygate_trial").Trial(cluster, 10).on_each_architecture(daemon_set())
    assert (tried, bool(why), True) == (cluster.tried, bool(said), said.startswith(why))
    assert [] == cluster.pods, "none of them stays"


@pytest.mark.parametrize(
    ("status", "why"),
    [
        pytest.param(WELL, "", id="it came to verdicts"),
        pytest.param(SEVERAL["status"], "on node-1: no verdict within 20 s (before that: no answer", id="it did not"),
        pytest.param(
            {"containerStatuses": [{"state": {"waiting": {"reason": "InvalidImageName", "message": "i"}}}]},
            "on node-1: InvalidImageName: i",
            id="its image has no name, which is not waited for",
        ),
    ],
)
def test_the_extenders_is_tried_on_its_host_alone(status, why):
    cluster = Cluster([], {"node-1": status})
    said, _ = module("readygate_objects", "readygate_trial").Trial(cluster, 10, 2).of([extenders_trial()])
    assert (["node-1"], []) == (cluster.tried, cluster.pods)
    assert (bool(why), True) == (bool(said), said.startswith(why))


def gate(verdict: str = "", held: str = "", severity: str = "gate") -> dict[str, str]:
    return {"severity": severity, "verdict": verdict, "heldBy": held, "evidence": "cni: gone" if verdict else ""}


NODES = [
    {"node": "a", "gates": [gate()]},
    {"node": "b", "gates": [gate("node(s) reported unhealthy"), gate("node(s) reported unhealthy")]},
    {"node": "c", "gates": [gate("node(s) reported unhealthy", "cap")]},
    {"node": "d", "gates": [gate("node(s) lost", "not-gated")]},
    {"node": "e", "gates": [gate("node(s) lost", "exempt"), gate("node(s) lost", severity="warn")]},
]


def test_nodes_that_would_be_closed_are_counted_whatever_holds_them_open_today():
    value = render("readygate_objects", {"__readygate_objects_nodes": {"json": {"nodes": NODES}}})
    assert ["a", "b", "c", "e"] == plain(value("__readygate_objects_decided"))
    assert ["b: node(s) reported unhealthy (cni: gone)", "c: node(s) reported unhealthy (cni: gone)"] == plain(
        value("__readygate_objects_closed")
    )


def test_before_any_node_is_decided_nothing_is_refused():
    value = render("readygate_objects", {"__readygate_objects_nodes": {"json": {"nodes": []}}})
    assert ([], []) == (plain(value("__readygate_objects_decided")), plain(value("__readygate_objects_closed")))
