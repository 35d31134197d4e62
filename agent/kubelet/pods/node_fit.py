"""Does a pod fit its node, whatever it asks of resources? Labels, fields, taints, host ports. Pure.

Mirrors nodeaffinity of component-helpers' scheduling package, ToleratesTaint of the core API and HostPortInfo of
kube-scheduler's framework, of v1.36.3. A toleration with Lt or Gt fits nothing: the gate for it is off.
"""

from collections.abc import Iterable, Iterator

from agent.kubelet.status.restarts import is_sidecar
from agent.wire.model import Node, Pod
from agent.wire.placement_model import NodeRequirement, NodeTerm, Taint, Toleration
from kube.selector import SelectorError, requirement

NO_EXECUTE = "NoExecute"
ANY_ADDRESS = "0.0.0.0"
TCP = "TCP"
_FIELD_NAME = "metadata.name"


def affinity_fits(pod: Pod, node: Node) -> bool:
    """Its nodeSelector and, of its required node affinity, one term. A term that is not valid holds nowhere."""
    asked = pod.placement
    if any(node.labels.get(key) != value for key, value in asked.node_selector.items()):
        return False
    return asked.node_terms is None or any(_holds(term, node) for term in asked.node_terms)


def taints_fit(pod: Pod, node: Node) -> bool:
    """Of taints those count that end pods."""
    return all(
        any(_tolerates(toleration, taint) for toleration in pod.placement.tolerations)
        for taint in node.taints
        if taint.effect == NO_EXECUTE
    )


def ports_fit(pod: Pod, others: Iterable[Pod]) -> bool:
    used = {port for other in others for port in _host_ports(other)}
    return not any(_conflicts(port, other) for port in _host_ports(pod) for other in used)


def _holds(term: NodeTerm, node: Node) -> bool:
    if not term.labels and not term.fields:
        return False
    try:
        wanted = [requirement(one.key, one.operator, one.values) for one in term.labels]
        fields = [_field_holds(one, node) for one in term.fields]
    except SelectorError:
        return False
    return all(one.matches(node.labels) for one in wanted) and all(fields)


def _field_holds(one: NodeRequirement, node: Node) -> bool:
    """Raises SelectorError."""
    if one.operator not in ("In", "NotIn") or len(one.values) != 1:
        raise SelectorError("In and NotIn with one value are allowed")
    value = node.name if one.key == _FIELD_NAME else ""
    return (value == one.values[0]) is (one.operator == "In")


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


_HostPort = tuple[str, str, int]


def _host_ports(pod: Pod) -> Iterator[_HostPort]:
    """Address, protocol and number of those that are taken while the pod runs."""
    for container in (*(c for c in pod.init_containers if is_sidecar(c)), *pod.containers):
        for port in container.ports:
            if port.host_port > 0:
                yield port.host_ip or ANY_ADDRESS, port.protocol or TCP, port.host_port


def _conflicts(one: _HostPort, other: _HostPort) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or ANY_ADDRESS in (one[0], other[0]))
