"""`readygate why` as a user runs it: queries, errors, exit codes, JSON, watching."""

import json
import os
import subprocess
import sys

import pytest

from cli.__main__ import main
from cli.why.scheduler_message import Reason, SchedulerMessage, parse
from extender.policy.reasons import CLOSED_UNHEALTHY
from tests.cli.served import HEAD, Extender, status_of

POD = "/api/v1/namespaces/team-a/pods/train-7"
MESSAGE = f"0/3 nodes are available: 1 {CLOSED_UNHEALTHY}, 2 Insufficient cpu."
PENDING = {
    "metadata": {"name": "train-7", "namespace": "team-a", "uid": "u-1"},
    "spec": {},
    "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": MESSAGE}]},
}
BOUND = {**PENDING, "spec": {"nodeName": "gpu-03"}, "status": {"phase": "Running"}}
TOLD = {
    "uid": "u-1",
    "attempts": 2,
    "last": {
        "agoSeconds": 1.0,
        "asked": 1,
        "refusedCount": 1,
        "refused": [{"node": "gpu-03", "gate": "gpu", "reason": CLOSED_UNHEALTHY}],
    },
}
DECISION = {
    "gate": "gpu",
    "open": False,
    "reason": CLOSED_UNHEALTHY,
    "verdict": CLOSED_UNHEALTHY,
    "sinceSeconds": 5.0,
    "evidence": "CheckFailed: gpu-count: 7",
}
NODE = {
    "node": {
        "node": "gpu-03",
        "open": False,
        "reason": CLOSED_UNHEALTHY,
        "sinceSeconds": 5.0,
        "pod": "",
        "evidence": "",
        "heartbeatAgeSeconds": None,
        "gates": [DECISION],
    }
}


@pytest.fixture
def asked(cluster):
    cluster.objects[POD] = PENDING
    answers = {
        "pods/team-a/train-7": TOLD,
        "nodes/gpu-03": NODE,
        "gates": {"gates": [{"gate": "gpu", "for": "GPU pods"}]},
    }
    cluster.extenders = [Extender("e-1", **{"pods/team-a/train-7": {"attempts": 0}}), Extender("e-2", **answers)]
    return cluster


def why(capsys, *arguments):
    code = main(["why", *arguments])
    written = capsys.readouterr()
    return code, written.out, written.err


PAGE = """\
train-7 has been Pending. One node would take it now; readygate keeps it off.

  gpu-03  closed for GPU pods 5s: gpu-count: 7
          opens when check gpu-count passes

The other 2 are unrelated to readygate: 2 Insufficient cpu (kube-scheduler)
No cap, pause or storm is in force.
2 of 2 scheduler calls for this pod were answered.

  details: readygate why node gpu-03
  open it anyway: readygate exempt --gate gpu --node gpu-03 --for 1h --reason WHY
"""


@pytest.mark.parametrize("behind_s", [-3600, 3600])
def test_the_clock_of_this_machine_does_not_matter(asked, capsys, monkeypatch, behind_s):
    """kube-scheduler's last attempt came after the call, and made none: no node passed its own filters."""
    message = "0/3 nodes are available: 3 Insufficient cpu."
    written = {"manager": "kube-scheduler", "subresource": "status", "time": "2026-11-22T12:00:00Z"}
    asked.objects[POD] = {
        "metadata": {**PENDING["metadata"], "creationTimestamp": "2026-11-22T11:58:00Z", "managedFields": [written]},
        "spec": {},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": message}]},
    }
    last = {**TOLD["last"], "agoSeconds": 60.0}
    for extender in asked.extenders:
        extender.answers["pods/team-a/train-7"] = {
            **TOLD,
            "notAnswering": "",
            "at": "2026-11-22T12:00:30Z",
            "last": last,
        }
    monkeypatch.setattr("time.time", lambda: 1_795_348_830.0 - behind_s)
    assert 0 == main(["why", "pod", "team-a/train-7"])
    assert "readygate is not the cause" in capsys.readouterr().out


@pytest.mark.parametrize("name", [("team-a/train-7",), ("-n", "team-a", "train-7")])
def test_why_pod_shows_the_page_after_three_queries(capsys, asked, name):
    assert (1, PAGE, "") == why(capsys, "pod", *name)
    assert [path for path, _ in asked.extenders[1].requests] == ["pods/team-a/train-7", "nodes/gpu-03", "gates"]


@pytest.mark.usefixtures("asked")
def test_json_of_a_pod_has_the_answer_and_the_nodes(capsys):
    code, out, _ = why(capsys, "pod", "team-a/train-7", "-o", "json")
    document = json.loads(out)
    assert (1, "blocked", 1, 3, ["e-1", "e-2"]) == (
        code,
        document["answer"],
        document["nodeCount"],
        document["nodesOfCluster"],
        sorted(document["extenders"]),
    )
    assert document["nodes"] == [
        {
            "node": "gpu-03",
            "gate": "gpu",
            "state": "closed for GPU pods 5s",
            "cause": "gpu-count: 7",
            "opensWhen": "check gpu-count passes",
            "openNow": False,
            "also": [],
        }
    ]


def test_json_of_a_pod_has_a_message_without_counts(capsys, asked):
    message = '0/3 nodes are available: persistentvolumeclaim "x" not found.'
    conditions = [{"type": "PodScheduled", "status": "False", "message": message}]
    asked.objects[POD] = {**PENDING, "status": {"phase": "Pending", "conditions": conditions}}
    document = json.loads(why(capsys, "pod", "team-a/train-7", "-o", "json")[1])
    assert ([], message) == (document["scheduler"], document["schedulerMessage"])


def test_json_of_a_node_has_the_verdict_of_each_extender(capsys, asked):
    asked.extenders[0].answers["nodes/gpu-03"] = {**HEAD, "node": {**NODE["node"], "open": True, "reason": ""}}
    document = json.loads(why(capsys, "node", "gpu-03", "-o", "json")[1])
    assert {"e-1": "open", "e-2": CLOSED_UNHEALTHY} == document["verdicts"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            status_of(404, "NotFound", 'pods "train-7" not found'),
            "readygate why: there is no pod team-a/train-7: kubectl get pods -A shows all\n",
            id="no such pod",
        ),
        pytest.param(
            status_of(403, "Forbidden", 'pods "train-7" is forbidden: User "ana" cannot get resource "pods"'),
            'readygate why: you may not get pod team-a/train-7: pods "train-7" is forbidden: User "ana" cannot get '
            'resource "pods"; ask for that right, or another --context\n',
            id="no right",
        ),
        pytest.param(
            (200, b'{"metadata": 7}'),
            "readygate why: the answer is no Pod; check the server in the kubeconfig\n",
            id="no pod",
        ),
    ],
)
def test_a_pod_that_cannot_be_read_is_unknown(capsys, asked, answer, expected):
    asked.objects[POD] = answer
    assert (3, "", expected) == why(capsys, "pod", "team-a/train-7")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(("pod", "a/b/c"), "a/b/c is not a pod; write NAMESPACE/NAME", id="too many parts"),
        pytest.param(("pod", "/b"), "/b is not a pod", id="no namespace"),
        pytest.param(("pod", "a/"), "a/ is not a pod", id="no name"),
        pytest.param(("pod", "a/b", "-n", "c"), "two namespaces: a and c; name one", id="two namespaces"),
    ],
)
@pytest.mark.usefixtures("asked")
def test_an_invalid_pod_name_is_wrong_usage(capsys, arguments, expected):
    code, out, err = why(capsys, *arguments)
    assert (2, "", True) == (code, out, expected in err)


def test_why_node_shows_a_closed_node(capsys, asked):
    asked.extenders = asked.extenders[1:]
    code, out, err = why(capsys, "node", "gpu-03")
    assert (1, "gpu-03 is closed for GPU pods, since 5s.", "") == (code, out.splitlines()[0], err)


@pytest.mark.usefixtures("asked")
def test_a_node_without_an_answer_is_unknown(capsys):
    expected = "readygate why: no extender knows a node gpu-99: kubectl get nodes shows all\n"
    assert (3, "", expected) == why(capsys, "node", "gpu-99")


def test_a_watch_ends_when_the_pod_is_bound(asked):
    command = [sys.executable, "-m", "cli", "why", "pod", "team-a/train-7", "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)) as watching:
        first = watching.stdout.readline()
        asked.objects[POD] = BOUND
        out, err = watching.communicate(timeout=100)
    assert first[9:] == b"train-7 has been Pending. One node would take it now; readygate keeps it off.\n"
    assert (0, b"It is not Pending: it runs on gpu-03.\n", b"") == (watching.returncode, out[9:], err)


# kube-scheduler's message


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(
            "0/12 nodes are available: 2 Insufficient nvidia.com/gpu, 7 node(s) had untolerated taint(s), 9 "
            f"{CLOSED_UNHEALTHY}. no new claims to deallocate, preemption: 0/12 nodes are available: 12 Not helpful.",
            SchedulerMessage(
                12,
                (
                    Reason(2, "Insufficient nvidia.com/gpu"),
                    Reason(7, "node(s) had untolerated taint(s)"),
                    Reason(9, CLOSED_UNHEALTHY),
                ),
                "",
            ),
            id="counted, and what was tried afterwards",
        ),
        pytest.param(
            "0/3 nodes are available: 3 Insufficient cpu. preemption: found a potential placement for pod on node "
            "node-1, preempting 2 victims",
            SchedulerMessage(3, (Reason(3, "Insufficient cpu"),), ""),
            id="preemption, in the words of 1.37",
        ),
        pytest.param(
            "0/3 nodes are available: 3 node(s) had taint {a: b, 4 c}, that the pod didn't tolerate.",
            SchedulerMessage(
                3, (Reason(3, "node(s) had taint {a: b"), Reason(4, "c}, that the pod didn't tolerate")), ""
            ),
            id="a reason that looks like two",
        ),
        pytest.param(
            '0/3 nodes are available: persistentvolumeclaim "x" not found. preemption: 0/3 nodes are available: 3 No.',
            SchedulerMessage(3, (), 'persistentvolumeclaim "x" not found'),
            id="without numbers",
        ),
        pytest.param("0/0 nodes are available:", SchedulerMessage(0, (), ""), id="no nodes"),
        pytest.param("no nodes available to schedule pods", None, id="another message"),
        pytest.param("", None, id="none"),
        pytest.param("0/" + "9" * 4000 + " nodes are available: 1 x.", None, id="a huge number"),
    ],
)
def test_the_message_of_the_scheduler_is_parsed(message, expected):
    assert expected == parse(message)


def test_a_message_of_megabytes_is_parsed_at_once():
    assert parse("0/3 nodes are available: " + "1 x, " * 2_000_000) is not None
