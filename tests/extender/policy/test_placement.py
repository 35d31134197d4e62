"""Where the pods of a DaemonSet can run; the cases are those of kubernetes pkg/controller/daemon and of
component-helpers nodeaffinity_test.go."""

from collections.abc import Mapping

import pytest

from extender.cluster import objects, observed
from extender.policy.placement import Placement, Taint, Term, term_of
from tests.extender.builders import seen

LINUX = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "pool": "web", "cores": "16"}


def placement(**spec: object) -> Placement:
    value = {"metadata": {"name": "cni"}, "spec": {"template": {"spec": spec}}}
    return objects.placement(seen(objects.DaemonSet, value))


def affinity(*terms: Mapping[str, object]) -> Mapping[str, object]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def asks(key: str, operator: str, *values: str) -> Mapping[str, object]:
    return {"key": key, "operator": operator, "values": list(values)}


def labels(*expressions: Mapping[str, object]) -> Mapping[str, object]:
    return {"matchExpressions": list(expressions)}


def fields(*expressions: Mapping[str, object]) -> Mapping[str, object]:
    return {"matchFields": list(expressions)}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, True, id="no wishes"),
        pytest.param({"nodeSelector": {"kubernetes.io/os": "linux"}}, True, id="the operating system it wants"),
        pytest.param({"nodeSelector": {"kubernetes.io/os": "windows"}}, False, id="another operating system"),
        pytest.param({"nodeSelector": {"kubernetes.io/arch": "arm64"}}, False, id="another architecture"),
        pytest.param({"nodeSelector": {"pool": "web", "gpu": ""}}, False, id="one label of two"),
        pytest.param({"nodeName": "n1"}, True, id="bound to this node"),
        pytest.param({"nodeName": "n2"}, False, id="bound to another node"),
        pytest.param({"affinity": {}}, True, id="an affinity that says nothing"),
        pytest.param({"affinity": {"nodeAffinity": {}}}, True, id="one that requires nothing"),
        pytest.param({"affinity": affinity(labels(asks("pool", "In", "web", "db")))}, True, id="In"),
        pytest.param({"affinity": affinity(labels(asks("pool", "NotIn", "web", "db")))}, False, id="NotIn"),
        pytest.param({"affinity": affinity(labels(asks("gone", "NotIn", "web")))}, True, id="NotIn without the label"),
        pytest.param({"affinity": affinity(labels(asks("pool", "Exists")))}, True, id="Exists"),
        pytest.param({"affinity": affinity(labels(asks("pool", "DoesNotExist")))}, False, id="DoesNotExist"),
        pytest.param({"affinity": affinity(labels(asks("cores", "Gt", "8")))}, True, id="Gt"),
        pytest.param({"affinity": affinity(labels(asks("cores", "Lt", "8")))}, False, id="Lt"),
        pytest.param({"affinity": affinity(labels(asks("pool", "Gt", "8")))}, False, id="Gt of a word"),
        pytest.param(
            {"affinity": affinity(labels(asks("pool", "In", "db")), labels(asks("pool", "In", "web")))},
            True,
            id="the second term",
        ),
        pytest.param(
            {"affinity": affinity(labels(asks("pool", "In", "web"), asks("gone", "Exists")))},
            False,
            id="all expressions of a term count",
        ),
        pytest.param({"affinity": affinity(fields(asks("metadata.name", "In", "n1")))}, True, id="the node's name"),
        pytest.param(
            {"affinity": affinity(fields(asks("metadata.name", "NotIn", "n1")))}, False, id="any but the node's name"
        ),
        pytest.param(
            {"affinity": affinity(fields(asks("metadata.uid", "In", "n1")))}, False, id="a field there is not"
        ),
        pytest.param(
            {"affinity": affinity({**labels(asks("pool", "In", "web")), **fields(asks("metadata.name", "In", "n2"))})},
            False,
            id="labels and fields of a term both count",
        ),
        pytest.param({"affinity": affinity({})}, False, id="an empty term fits no node"),
        pytest.param({"affinity": affinity()}, False, id="no term fits no node"),
        pytest.param(
            {"affinity": affinity({}, labels(asks("pool", "Exists")))}, True, id="an empty term hurts no other"
        ),
        pytest.param(
            {"affinity": affinity(labels(asks("pool", "Near", "web")), labels(asks("pool", "Exists")))},
            True,
            id="a term that cannot be read hurts no other",
        ),
        pytest.param({"affinity": affinity(labels(asks("pool", "Near", "web")))}, False, id="alone it fits no node"),
        pytest.param(
            {"affinity": affinity(fields(asks("metadata.name", "In", "n1", "n2")))},
            False,
            id="two names cannot be read",
        ),
        pytest.param(
            {"nodeSelector": {"pool": "db"}, "affinity": affinity(labels(asks("pool", "Exists")))},
            False,
            id="nodeSelector and affinity both count",
        ),
    ],
)
def test_whether_a_pod_of_the_daemonset_can_run_on_n1(spec: Mapping[str, object], expected: bool) -> None:
    assert expected == placement(**spec).admits("n1", LINUX)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (Placement({"os": "linux"}), "the DaemonSet's nodeSelector wants os=linux, the node has no os"),
        (Placement({"pool": "db"}), "the DaemonSet's nodeSelector wants pool=db, the node has pool=web"),
        (Placement(node_name="n2"), "the DaemonSet runs on n2 only"),
        (Placement(terms=()), "the DaemonSet's node affinity fits no node"),
        (Placement(terms=(Term(unreadable=True),)), "the DaemonSet's node affinity fits no node"),
        (
            Placement(
                terms=(
                    term_of([("pool", "In", ["a", "b"]), ("cores", "Gt", ["32"])], []),
                    term_of([("gpu", "Exists", [])], [("metadata.name", "NotIn", ["n1"])]),
                )
            ),
            "the DaemonSet's node affinity wants pool in (a,b),cores>32 or gpu,metadata.name!=n1",
        ),
        (Placement({"pool": "web"}), ""),
    ],
)
def test_why_it_cannot_is_said_in_one_line(made: Placement, expected: str) -> None:
    assert expected == made.why_not("n1", LINUX)


CONTROL = Taint("node-role.kubernetes.io/control-plane")


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([], "the DaemonSet does not tolerate node-role.kubernetes.io/control-plane:NoSchedule", id="none"),
        pytest.param([{"operator": "Exists"}], "", id="everything"),
        pytest.param([{"operator": "Exists", "effect": "NoSchedule"}], "", id="everything of its effect"),
        pytest.param(
            [{"operator": "Exists", "effect": "NoExecute"}],
            "the DaemonSet does not tolerate node-role.kubernetes.io/control-plane:NoSchedule",
            id="everything of another effect",
        ),
        pytest.param([{"key": CONTROL.key, "operator": "Exists"}], "", id="the key"),
        pytest.param([{"key": CONTROL.key}], "", id="the key with the empty value, which it has"),
        pytest.param([{"key": CONTROL.key, "operator": "Equal", "effect": "NoSchedule"}], "", id="the same in full"),
        pytest.param(
            [{"key": CONTROL.key, "value": "true"}],
            "the DaemonSet does not tolerate node-role.kubernetes.io/control-plane:NoSchedule",
            id="the key with another value",
        ),
        pytest.param(
            [{"key": "node-role.kubernetes.io/master", "operator": "Exists"}],
            "the DaemonSet does not tolerate node-role.kubernetes.io/control-plane:NoSchedule",
            id="another key",
        ),
    ],
)
def test_a_node_whose_role_the_daemonset_does_not_tolerate(tolerations: list[object], expected: str) -> None:
    assert expected == placement(tolerations=tolerations).why_not("n1", LINUX, (CONTROL,))


def test_of_a_nodes_taints_only_those_of_its_role_are_kept() -> None:
    taints = [
        {"key": CONTROL.key, "effect": "NoSchedule"},
        {"key": "node-role.kubernetes.io/infra", "value": "a", "effect": "NoExecute"},
        {"key": "node-role.kubernetes.io/soft", "effect": "PreferNoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
        {"key": "example.com/agent-not-ready", "effect": "NoSchedule"},
        {"key": "dedicated", "value": "db", "effect": "NoSchedule"},
    ]
    node = seen(observed.Node, {"metadata": {"name": "n1"}, "spec": {"taints": taints}})
    roles = (CONTROL, Taint("node-role.kubernetes.io/infra", "a", "NoExecute"))
    assert roles == observed.observed_node(node, 0.0).roles


def test_placements_are_compared_by_what_they_say() -> None:
    spec = {"nodeSelector": {"a": "b"}, "affinity": affinity(labels(asks("pool", "In", "web", "db")))}
    assert placement(**spec) == placement(**spec)
    assert placement(**spec) != placement()
