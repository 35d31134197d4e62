"""What the extender answers, by the cases X of the contract: a real server, real sockets, strict types.

All of it twice: at the port of kube-scheduler, and at that of the people, where Flask has the same functions.

Nodes: h* healthy; u1, b* with a health pod that is not Ready; m1 without one; s1, t1, f1 with pods that do not count.
"""

import json

import pytest

from extender.policy.reasons import CLOSED_NO_HEALTH_POD, CLOSED_NOT_READY, REASONS
from extender.verbs import wire
from tests.contract.bad_bodies import BAD_BODIES
from tests.extender.builders import AGENT_LABELS, owner
from tests.scripted.conftest import BROKEN
from tests.scripted.conftest import NODES as KNOWN
from tests.scripted.extender_process import ORDINARY_POD, checked


@pytest.mark.parametrize(
    ("names", "survivors", "refused"),
    [
        pytest.param(["h1", "u1", "h2"], ["h1", "h2"], {"u1": CLOSED_NOT_READY}, id="X1 mixed"),
        pytest.param(["h2", "h1"], ["h2", "h1"], {}, id="X2 all healthy, in the order asked"),
        pytest.param(["u1", "m1"], [], {"u1": CLOSED_NOT_READY, "m1": CLOSED_NO_HEALTH_POD}, id="X3 none healthy"),
        pytest.param([], [], {}, id="X4 none asked"),
        pytest.param(["m1", "x1"], [], dict.fromkeys(["m1", "x1"], CLOSED_NO_HEALTH_POD), id="X5 no pod, no node"),
        pytest.param(["h1", "u1", "h1", "u1"], ["h1"], {"u1": CLOSED_NOT_READY}, id="X8 asked twice"),
        pytest.param(["t1", "f1"], [], dict.fromkeys(["t1", "f1"], CLOSED_NO_HEALTH_POD), id="X52 terminating, failed"),
        pytest.param(["s1"], [], {"s1": CLOSED_NO_HEALTH_POD}, id="X53 other DaemonSet, other namespace"),
    ],
)
def test_names_mode(asked, names, survivors, refused):
    result = asked.filter(names)
    assert (result.NodeNames, result.FailedAndUnresolvableNodes, result.Nodes, result.Error) == (
        survivors,
        refused,
        None,
        "",
    )


def test_x6_reasons_are_few_and_constant_and_answers_repeat_byte_for_byte(asked):
    request = {"Pod": ORDINARY_POD, "Nodes": None, "NodeNames": [*BROKEN, "x1", "m1"]}
    first, second = asked.post(request)[2], asked.post(request)[2]
    assert first == second
    reasons = set(checked(first, request["NodeNames"]).FailedAndUnresolvableNodes.values())
    assert reasons <= set(REASONS)
    assert not [reason for reason in reasons if any(c.isdigit() or c == "%" for c in reason)]


def test_x7_every_name_is_answered_once(asked):
    names = [name for pair in zip(BROKEN, ["h1", "x1", "h2", "m1", "u1"] * 100, strict=True) for name in pair]
    assert asked.filter(names).NodeNames == ["h1", "h2"]


NODES = {"metadata": {}, "items": [{"metadata": {"name": "h1"}}]}


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(NODES, id="X9 whole nodes"),
        pytest.param({"metadata": {}, "items": None}, id="X13 whole nodes, of which there are none"),
        pytest.param(None, id="X12 neither"),
    ],
)
def test_without_names_the_setting_is_named(asked, nodes):
    result = asked.filter(None, nodes=nodes)
    assert (None, None, wire.NEITHER) == (result.NodeNames, result.Nodes, result.Error)


def test_x11_with_both_the_names_are_answered(asked):
    result = asked.filter(["h1", "u1"], nodes=NODES)
    assert (["h1"], None, ["u1"]) == (result.NodeNames, result.Nodes, list(result.FailedAndUnresolvableNodes))


DAEMON_POD = {"metadata": {"name": "d", "namespace": "default", "ownerReferences": [owner("cni")]}}


@pytest.mark.parametrize(
    ("pod", "survives"),
    [
        pytest.param(
            {"metadata": {"namespace": "readygate-system", "labels": AGENT_LABELS, "ownerReferences": [owner()]}},
            True,
            id="X15 the health pod itself",
        ),
        pytest.param(DAEMON_POD, True, id="X16 another DaemonSet's pod"),
        pytest.param(
            {"metadata": {"ownerReferences": [owner(controller=False)]}}, False, id="X17 an owner that is no controller"
        ),
        pytest.param(
            {"metadata": {"ownerReferences": [owner(apiVersion="extensions/v1beta1")]}},
            False,
            id="X17 wrong apiVersion",
        ),
        pytest.param({"metadata": {"ownerReferences": [owner(kind="Job")]}}, False, id="X17 another kind"),
        pytest.param({"metadata": {"labels": AGENT_LABELS}}, False, id="X18 the health label elsewhere"),
        pytest.param({"metadata": {"namespace": "kube-system"}}, True, id="X19 kube-system"),
        pytest.param(
            {"metadata": {"namespace": "tenant", "labels": {"readygate.dev/exempt": "true"}}},
            False,
            id="X19 a label that a tenant gave itself",
        ),
        pytest.param({}, False, id="X24 without metadata"),
        pytest.param({"metadata": None, "spec": None}, False, id="X24 metadata null"),
        pytest.param({"metadata": {"labels": None, "ownerReferences": None}}, False, id="X24 labels and owners null"),
    ],
)
def test_exemptions(asked, pod, survives):
    assert asked.filter(["u1"], pod=pod).NodeNames == (["u1"] if survives else [])


@pytest.mark.parametrize("pod", [pytest.param(None, id="null"), pytest.param("absent", id="missing")])
def test_x23_no_pod_is_an_error_a_user_can_read(asked, pod):
    request = {"NodeNames": ["h1"], "Nodes": None} | ({} if pod == "absent" else {"Pod": pod})
    status, _, body = asked.post(request)
    assert (status, checked(body).Error) == (200, "readygate: the request holds no Pod")


@pytest.mark.parametrize("body", BAD_BODIES)
def test_bad_bodies_are_refused_and_harm_nothing(asked, body):
    connection = asked.connection()
    connection.request("POST", "/filter", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = response.read()
    assert (response.status, len(answer) < 400) == (400, True)
    assert checked(answer).Error.startswith("readygate: ")
    good = json.dumps({"Pod": {}, "NodeNames": ["h1"]})
    connection.request("POST", "/filter", good)
    assert checked(connection.getresponse().read(), ["h1"]).NodeNames == ["h1"]
    connection.close()


def test_x28_an_empty_name_is_not_echoed(asked):
    result = asked.filter(["h1", ""])
    assert (result.NodeNames, bool(result.Error)) == (None, True)


def test_x26_of_doubled_keys_the_last_counts(asked):
    assert checked(asked.post(b'{"Pod":{},"NodeNames":["u1"],"NodeNames":["h1"]}')[2]).NodeNames == ["h1"]


@pytest.mark.parametrize(
    "request_body",
    [
        pytest.param({"pod": {}, "nodenames": ["h1"], "nodes": None}, id="X29 lower case"),
        pytest.param({"Pod": {}, "NodeNames": ["h1"], "Extra": {"a": [1]}, "Nodes": None}, id="X30 unknown keys"),
    ],
)
def test_keys(asked, request_body):
    assert checked(asked.post(request_body)[2], ["h1"]).NodeNames == ["h1"]


def test_x39_as_many_names_as_the_limit_are_answered(asked):
    names = [f"node-{i:05d}" for i in range(wire.names_max_of(KNOWN))]
    result = asked.filter(["h1", *names[1:]])
    assert (result.NodeNames, len(result.FailedAndUnresolvableNodes)) == (["h1"], len(names) - 1)


def test_x62_more_names_than_the_limit_are_refused(asked):
    names = [f"node-{i:05d}" for i in range(wire.names_max_of(KNOWN))]
    text = f"readygate: the request names more nodes than the limit of {len(names)}"
    for path in ("/filter", "/prioritize"):
        status, _, body = asked.post({"Pod": ORDINARY_POD, "Nodes": None, "NodeNames": ["h1", *names]}, path)
        assert (413, text) == (status, json.loads(body)["Error"])
    assert asked.filter(["h1"]).NodeNames == ["h1"]
