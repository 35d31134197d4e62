"""The pod in which a new image reads its new configuration before any agent is touched."""

from typing import Any

import pytest
from readygate_objects.trial import LABELS, outcome, trial_nodes, trial_pod

from kube import contract
from tests.playbooks.rendering import objects, plain, render

KEY = ("DaemonSet", contract.NAMESPACE, contract.NAME_AGENT)
DAEMON_SET = plain(objects("readygate_agent", {})[KEY])


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
    daemon_set = plain(objects("readygate_agent", {"readygate_agent_node_selector": selector})[KEY])
    assert expected == trial_nodes(daemon_set, nodes)


def test_the_pod_is_an_agents_but_for_what_makes_it_one():
    """The same image, configuration, folders and user; it answers nobody, is nobody's health pod, and ends."""
    agent, pod = DAEMON_SET["spec"]["template"]["spec"], trial_pod(DAEMON_SET, "node-1", "amd64", 90)
    spec = pod["spec"]
    (mine,), (theirs,) = spec["containers"], agent["containers"]
    assert mine["command"] == [*theirs["command"], "--check"]
    same = ("image", "volumeMounts", "securityContext", "env", "resources", "terminationMessagePolicy")
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
