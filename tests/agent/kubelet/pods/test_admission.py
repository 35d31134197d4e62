"""Which pods a node refuses, in a kubelet's words."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agent.kubelet.pods.admission import Refusal, refusal
from agent.wire.model import Container, ContainerPort, Node, NodeStatus, Pod, RestartPolicy, RestartRule
from agent.wire.placement_model import NodeRequirement, NodeTerm, Placement, Taint, Toleration
from agent.wire.semantics import V1_16, Semantics

ALL = (RestartRule("RestartAllContainers", "In", (1,)),)
PLAIN = Pod("u", "p", "ns", containers=(Container("c"),))
RESTARTING = replace(PLAIN, init_containers=(Container("i", restart_rules=ALL),))
MAPPED = replace(PLAIN, host_network=True, host_users=False)
BOTH = replace(MAPPED, containers=(Container("c", restart_rules=ALL),))
MISSING = "Pod requires node features that are not available: "
RESTART, USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
NO_ROOM = Refusal("OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 9, capacity: 9")
ALLOCATABLE = {"cpu": "2", "memory": "1000", "ephemeral-storage": "500", "pods": "9", "example.com/gpu": "2"}
NODE = Node(
    "n",
    labels={"pool": "a", "size": "3"},
    taints=(Taint("soft", "", "NoSchedule"),),
    status=NodeStatus(allocatable=ALLOCATABLE),
)
DECLARED = Semantics().declared_features


@pytest.mark.parametrize(
    ("pod", "used", "semantics", "expected"),
    [
        pytest.param(PLAIN, 8, Semantics(), None, id="the last one that there is room for"),
        pytest.param(PLAIN, 9, Semantics(), NO_ROOM, id="one too many"),
        pytest.param(RESTARTING, 0, Semantics(), None, id="N94 what it needs is declared"),
        pytest.param(
            RESTARTING,
            0,
            Semantics(restart_all_containers_on_container_exits=False),
            Refusal("PodFeatureUnsupported", MISSING + RESTART),
            id="N94 what it needs is not",
        ),
        pytest.param(
            RESTARTING,
            0,
            Semantics(restart_all_containers_on_container_exits=False, node_declared_features=False),
            None,
            id="N94 nobody declares anything",
        ),
        pytest.param(BOTH, 0, V1_16, None, id="N94 a kubelet of old asks for nothing"),
        pytest.param(
            MAPPED,
            0,
            Semantics(),
            Refusal("PodFeatureUnsupported", MISSING + USERS),
            id="N94 users of its own in the node's network",
        ),
        pytest.param(
            BOTH,
            0,
            Semantics(restart_all_containers_on_container_exits=False),
            Refusal("PodFeatureUnsupported", f"{MISSING}{RESTART}, {USERS}"),
            id="N94 all that is missing is named",
        ),
        pytest.param(MAPPED, 9, Semantics(), NO_ROOM, id="room comes first"),
    ],
)
def test_which_pods_are_refused(pod: Pod, used: int, semantics: Semantics, expected: Refusal | None) -> None:
    assert expected == refusal(pod, [PLAIN] * used, NODE, semantics.declared_features)


def asking(quantities: Mapping[str, str], kind: str = "requests", **fields: Any) -> Container:
    return Container("c", resources=tuple((kind, name, value) for name, value in quantities.items()), **fields)


def pod_of(*containers: Container, init: Sequence[Container] = (), **placement: Any) -> Pod:
    return Pod("u", "p", "ns", containers=containers, init_containers=tuple(init), placement=Placement(**placement))


def out_of(resource: str, requested: int, used: int, capacity: int) -> tuple[str, str]:
    numbers = f"requested: {requested}, used: {used}, capacity: {capacity}"
    return f"OutOf{resource}", f"Node didn't have enough resource: {resource}, {numbers}"


def told(pod: Pod, *others: Pod, node: Node = NODE) -> tuple[str, str] | None:
    found = refusal(pod, others, node, DECLARED)
    return found and (found.reason, found.text)


HALF = pod_of(asking({"cpu": "1", "memory": "500"}))
ALWAYS = {"restart_policy": RestartPolicy.ALWAYS}


@pytest.mark.parametrize(
    ("pod", "others", "expected"),
    [
        pytest.param(HALF, [HALF], None, id="all that there is"),
        pytest.param(pod_of(asking({"cpu": "1001m"})), [HALF], out_of("cpu", 1001, 1000, 2000), id="too much CPU"),
        pytest.param(pod_of(asking({"cpu": "1.0005"})), [HALF], out_of("cpu", 1001, 1000, 2000), id="rounded up"),
        pytest.param(pod_of(asking({"memory": "501"})), [HALF], out_of("memory", 501, 500, 1000), id="too much memory"),
        pytest.param(
            pod_of(asking({"ephemeral-storage": "1Ki"})),
            [],
            out_of("ephemeral-storage", 1024, 0, 500),
            id="too much storage",
        ),
        pytest.param(
            pod_of(asking({"cpu": "9", "memory": "9999"})),
            [],
            out_of("cpu", 9000, 0, 2000),
            id="CPU comes first",
        ),
        pytest.param(PLAIN, [HALF, HALF, HALF], None, id="a pod that asks for nothing fits a full node"),
        pytest.param(pod_of(asking({"cpu": "9"}, "limits")), [], None, id="limits are not asked for"),
        pytest.param(
            pod_of(asking({"example.com/gpu": "2"})),
            [pod_of(asking({"example.com/gpu": "1"}))],
            out_of("example.com/gpu", 2, 1, 2),
            id="an extended resource of the node",
        ),
        pytest.param(pod_of(asking({"example.com/shared": "5"})), [], None, id="an extended resource of the cluster"),
        pytest.param(
            pod_of(asking({"hugepages-2Mi": "2Mi"})), [], out_of("hugepages-2Mi", 2097152, 0, 0), id="huge pages"
        ),
        pytest.param(
            pod_of(asking({"cpu": "500m"}), init=[asking({"cpu": "3"})]),
            [],
            out_of("cpu", 3000, 0, 2000),
            id="an init container asks for more than the app containers",
        ),
        pytest.param(
            pod_of(asking({"cpu": "1"}), init=[asking({"cpu": "2"}), asking({"cpu": "500m"}, **ALWAYS)]),
            [],
            None,
            id="an init container before a sidecar runs without it",
        ),
        pytest.param(
            pod_of(asking({"cpu": "1"}), init=[asking({"cpu": "500m"}, **ALWAYS), asking({"cpu": "2"})]),
            [],
            out_of("cpu", 2500, 0, 2000),
            id="an init container behind a sidecar runs with it",
        ),
        pytest.param(
            pod_of(asking({"cpu": "1"}), overhead={"cpu": "1001m"}),
            [],
            out_of("cpu", 2001, 0, 2000),
            id="the overhead of its runtime class",
        ),
        pytest.param(
            pod_of(asking({"cpu": "3"}), resources=(("requests", "cpu", "2"), ("requests", "ephemeral-storage", "9"))),
            [],
            None,
            id="what the pod asks for as a whole counts instead, of CPU, memory and huge pages",
        ),
    ],
)
def test_am1_resources(pod: Pod, others: Sequence[Pod], expected: tuple[str, str] | None) -> None:
    assert expected == told(pod, *others)


def test_am1_a_node_without_allocatable_pods_takes_none() -> None:
    assert out_of("pods", 1, 0, 0) == told(PLAIN, node=Node("n"))


def term(*labels: tuple[str, ...], fields: Sequence[tuple[str, ...]] = ()) -> NodeTerm:
    return NodeTerm(*(tuple(NodeRequirement(k, op, tuple(v)) for k, op, *v in of) for of in (labels, fields)))


AFFINITY = ("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")


@pytest.mark.parametrize(
    ("placement", "fits"),
    [
        pytest.param({"node_selector": {"pool": "a"}}, True, id="a label that is there"),
        pytest.param({"node_selector": {"pool": "b"}}, False, id="another value"),
        pytest.param({"node_selector": {"none": ""}}, False, id="no such label"),
        pytest.param({"node_terms": (term(("pool", "In", "b"), ("size", "Exists")),)}, False, id="half a term"),
        pytest.param({"node_terms": (term(("pool", "In", "b")), term(("size", "Gt", "2")))}, True, id="one of two"),
        pytest.param({"node_terms": ()}, False, id="no terms hold nowhere"),
        pytest.param({"node_terms": (term(),)}, False, id="an empty term holds nowhere"),
        pytest.param({"node_terms": (term(("pool", "Like", "a")),)}, False, id="an operator that there is not"),
        pytest.param({"node_terms": (term(("size", "Lt", "x")),)}, False, id="no number"),
        pytest.param({"node_terms": (term(fields=[("metadata.name", "In", "n")]),)}, True, id="a DaemonSet's pod"),
        pytest.param({"node_terms": (term(fields=[("metadata.name", "NotIn", "n")]),)}, False, id="any but this node"),
        pytest.param({"node_terms": (term(fields=[("metadata.name", "In", "n", "m")]),)}, False, id="two values"),
        pytest.param(
            {"node_selector": {"pool": "b"}, "node_terms": (term(("pool", "In", "a")),)}, False, id="both must hold"
        ),
    ],
)
def test_am2_node_affinity(placement: dict[str, Any], fits: bool) -> None:
    assert (None if fits else AFFINITY) == told(replace(PLAIN, placement=Placement(**placement)))


def with_port(number: int, ip: str = "", protocol: str = "", **fields: Any) -> Pod:
    port = ContainerPort(80, host_port=number, host_ip=ip, protocol=protocol)
    return pod_of(Container("c", ports=(port,), **fields))


PORTS = ("NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports")
ON_ONE = with_port(80, "10.0.0.1")
IN_INIT = pod_of(Container("c"), init=with_port(80).containers)
IN_SIDECAR = pod_of(Container("c"), init=with_port(80, **ALWAYS).containers)


@pytest.mark.parametrize(
    ("pod", "other", "fits"),
    [
        pytest.param(with_port(80), with_port(80), False, id="the same port"),
        pytest.param(with_port(80), with_port(81), True, id="another port"),
        pytest.param(with_port(80), with_port(80, protocol="UDP"), True, id="another protocol"),
        pytest.param(with_port(80, protocol="TCP"), with_port(80, "0.0.0.0"), False, id="the defaults"),
        pytest.param(ON_ONE, with_port(80, "10.0.0.2"), True, id="another address"),
        pytest.param(ON_ONE, with_port(80), False, id="one of all addresses"),
        pytest.param(with_port(80), ON_ONE, False, id="all addresses, of which one is taken"),
        pytest.param(with_port(0), with_port(0), True, id="no port of the host"),
        pytest.param(IN_INIT, with_port(80), True, id="an init container's is free again"),
        pytest.param(IN_SIDECAR, with_port(80), False, id="a sidecar's is not"),
    ],
)
def test_am3_ports_of_the_host(pod: Pod, other: Pod, fits: bool) -> None:
    assert (None if fits else PORTS) == told(pod, other)


TAINTS = ("TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate")
OUT = Taint("out", "yes", "NoExecute")


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        pytest.param(None, False, id="none"),
        pytest.param(Toleration("out", "Equal", "yes", "NoExecute"), True, id="the taint itself"),
        pytest.param(Toleration("out", "", "yes"), True, id="with the defaults"),
        pytest.param(Toleration("out", "", "no"), False, id="another value"),
        pytest.param(Toleration("out", "Exists"), True, id="any value"),
        pytest.param(Toleration("", "Exists"), True, id="everything"),
        pytest.param(Toleration("other", "Exists"), False, id="another taint"),
        pytest.param(Toleration("out", "Exists", "", "NoSchedule"), False, id="another effect"),
        pytest.param(Toleration("out", "Gt", "1"), False, id="a comparison, which needs a gate"),
    ],
)
def test_am4_taints_that_end_pods(toleration: Toleration | None, fits: bool) -> None:
    pod = replace(PLAIN, placement=Placement(tolerations=() if toleration is None else (toleration,)))
    assert (None if fits else TAINTS) == told(pod, node=replace(NODE, taints=(*NODE.taints, OUT)))


def test_am4_a_static_pod_is_asked_for_no_tolerations() -> None:
    assert told(replace(PLAIN, static=True), node=replace(NODE, taints=(OUT,))) is None


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(replace(PLAIN, labels={"kubernetes.io/os": "linux"}), "", id="of this system"),
        pytest.param(
            replace(PLAIN, labels={"kubernetes.io/os": "windows"}),
            "PodOSSelectorNodeLabelDoesNotMatch: "
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
            id="its label names another",
        ),
        pytest.param(
            pod_of(os="windows"),
            "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS",
            id="its spec names another",
        ),
        pytest.param(
            replace(PLAIN, node_name="m"),
            "NodeName: Predicate NodeName failed: node(s) didn't match the requested node name",
            id="it is of another node",
        ),
        pytest.param(replace(PLAIN, node_name="n"), "", id="it is of this node"),
    ],
)
def test_am5_other_systems_and_nodes(pod: Pod, expected: str) -> None:
    assert expected == ": ".join(told(pod) or ())


def test_am6_the_first_reason_is_told_resources_affinity_ports_taints_features() -> None:
    node = replace(NODE, taints=(OUT,))
    rest = [with_port(80)]
    pod = replace(
        BOTH,
        containers=(*asking_port(80), Container("i", restart_rules=ALL)),
        placement=Placement(node_selector={"pool": "b"}),
    )
    found = [told(pod, *rest, node=node)]
    pod = replace(pod, containers=(replace(pod.containers[0], resources=()), *pod.containers[1:]))
    found.append(told(pod, *rest, node=node))
    pod = replace(pod, placement=Placement())
    found.append(told(pod, *rest, node=node))
    found.append(told(pod, node=node))
    found.append(told(pod, node=NODE))
    reasons = ["OutOfcpu", "NodeAffinity", "NodePorts", "TaintToleration", "PodFeatureUnsupported"]
    assert reasons == [each and each[0] for each in found]


def asking_port(number: int) -> tuple[Container, ...]:
    return tuple(replace(c, resources=(("requests", "cpu", "9"),)) for c in with_port(number).containers)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(pod_of(asking({"cpu": "9"}), priority=2 * 10**9), None, id="of a critical priority"),
        pytest.param(pod_of(asking({"cpu": "9"}), priority=2 * 10**9 - 1), "OutOfcpu", id="of a high priority"),
        pytest.param(replace(pod_of(asking({"cpu": "9"})), static=True), None, id="static"),
        pytest.param(
            replace(pod_of(asking({"cpu": "9"}), node_selector={"pool": "b"}), static=True),
            "NodeAffinity",
            id="elsewhere",
        ),
    ],
)
def test_am9_a_critical_pod_is_refused_for_no_lack_of_resources(pod: Pod, expected: str | None) -> None:
    assert expected == (told(pod) or (None,))[0]
