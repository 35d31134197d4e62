"""Where the pods of a DaemonSet can run; the cases are those of kubernetes pkg/controller/daemon and of
component-helpers nodeaffinity_test.go."""

from collections.abc import Mapping

import pytest

from extender.cluster import objects, observed
from extender.policy.placement import Placement, Taint, Term, term_of
from tests.extender.builders import seen
from tools.kit.cases import cases

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


def in_pool(pool: str) -> Mapping[str, object]:
    return labels(asks("pool", "In", pool))


HAS_POOL = labels(asks("pool", "Exists"))


@cases(
    "spec, expected",
    ("no wishes", {}, True),
    ("the operating system it wants", {"nodeSelector": {"kubernetes.io/os": "linux"}}, True),
    ("another operating system", {"nodeSelector": {"kubernetes.io/os": "windows"}}, False),
    ("another architecture", {"nodeSelector": {"kubernetes.io/arch": "arm64"}}, False),
    ("one label of two", {"nodeSelector": {"pool": "web", "gpu": ""}}, False),
    ("bound to this node", {"nodeName": "n1"}, True),
    ("bound to another node", {"nodeName": "n2"}, False),
    ("an affinity that says nothing", {"affinity": {}}, True),
    ("one that requires nothing", {"affinity": {"nodeAffinity": {}}}, True),
    ("In", {"affinity": affinity(labels(asks("pool", "In", "web", "db")))}, True),
    ("NotIn", {"affinity": affinity(labels(asks("pool", "NotIn", "web", "db")))}, False),
    ("NotIn without the label", {"affinity": affinity(labels(asks("gone", "NotIn", "web")))}, True),
    ("Exists", {"affinity": affinity(labels(asks("pool", "Exists")))}, True),
    ("DoesNotExist", {"affinity": affinity(labels(asks("pool", "DoesNotExist")))}, False),
    ("Gt", {"affinity": affinity(labels(asks("cores", "Gt", "8")))}, True),
    ("Lt", {"affinity": affinity(labels(asks("cores", "Lt", "8")))}, False),
    ("Gt of a word", {"affinity": affinity(labels(asks("pool", "Gt", "8")))}, False),
    ("the second term", {"affinity": affinity(in_pool("db"), in_pool("web"))}, True),
    ("every expression", {"affinity": affinity(labels(asks("pool", "In", "web"), asks("gone", "Exists")))}, False),
    ("the node's name", {"affinity": affinity(fields(asks("metadata.name", "In", "n1")))}, True),
    ("any but the node's name", {"affinity": affinity(fields(asks("metadata.name", "NotIn", "n1")))}, False),
    ("a field there is not", {"affinity": affinity(fields(asks("metadata.uid", "In", "n1")))}, False),
    ("both", {"affinity": affinity({**in_pool("web"), **fields(asks("metadata.name", "In", "n2"))})}, False),
    ("an empty term fits no node", {"affinity": affinity({})}, False),
    ("no term fits no node", {"affinity": affinity()}, False),
    ("an empty term hurts no other", {"affinity": affinity({}, labels(asks("pool", "Exists")))}, True),
    ("an unreadable term hurts no other", {"affinity": affinity(labels(asks("pool", "Near", "web")), HAS_POOL)}, True),
    ("alone it fits no node", {"affinity": affinity(labels(asks("pool", "Near", "web")))}, False),
    ("two names cannot be read", {"affinity": affinity(fields(asks("metadata.name", "In", "n1", "n2")))}, False),
    ("nodeSelector and affinity", {"nodeSelector": {"pool": "db"}, "affinity": affinity(HAS_POOL)}, False),
)
def test_whether_a_pod_of_the_daemonset_can_run_on_n1(spec: Mapping[str, object], expected: bool) -> None:
    assert expected == (placement(**spec).why_not("n1", LINUX) == "")


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
NOT_TOLERATED = "the DaemonSet does not tolerate node-role.kubernetes.io/control-plane:NoSchedule"


@cases(
    "tolerations, expected",
    ("none", [], NOT_TOLERATED),
    ("everything", [{"operator": "Exists"}], ""),
    ("everything of its effect", [{"operator": "Exists", "effect": "NoSchedule"}], ""),
    ("everything of another effect", [{"operator": "Exists", "effect": "NoExecute"}], NOT_TOLERATED),
    ("the key", [{"key": CONTROL.key, "operator": "Exists"}], ""),
    ("the key with the empty value, which it has", [{"key": CONTROL.key}], ""),
    ("the same in full", [{"key": CONTROL.key, "operator": "Equal", "effect": "NoSchedule"}], ""),
    ("the key with another value", [{"key": CONTROL.key, "value": "true"}], NOT_TOLERATED),
    ("another key", [{"key": "node-role.kubernetes.io/master", "operator": "Exists"}], NOT_TOLERATED),
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
