"""May one more pod run here? Pure.

Mirrors canAdmitPod and rejectPod of the kubelet, v1.36.3, and of pkg/kubelet/lifecycle the predicates and what a pod
needs the node to declare: the first reason is reported. `requests` and `fitting` decide one question each.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from agent.kubelet.node.facts import LABEL_OS, LINUX
from agent.kubelet.plugins.handlers import is_extended_resource
from agent.kubelet.pods.node_fit import affinity_fits, ports_fit, taints_fit
from agent.kubelet.pods.requests import CPU, MEMORY, PODS, STORAGE, allocatable, pod_requests
from agent.kubelet.status.restarts import all_containers_could_restart
from agent.wire.model import Node, Pod, PodPhase, PodStatus
from agent.wire.semantics import RESTART_ALL

USER_NAMESPACES = "UserNamespacesHostNetworkSupport"
_OS_LABEL = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
_OS_FIELD = "Failed to admit pod as the OS field doesn't match node OS"
_PREDICATES = {
    "NodeAffinity": "node(s) didn't match Pod's node affinity/selector",
    "NodeName": "node(s) didn't match the requested node name",
    "NodePorts": "node(s) didn't have free ports for the requested pod ports",
    "TaintToleration": "node(s) had taints that the pod didn't tolerate",
}
SYSTEM_CRITICAL = 2 * 10**9
_IN_ORDER = (CPU, MEMORY, STORAGE)


@dataclass(frozen=True, slots=True)
class Refusal:
    reason: str
    text: str

    def status(self, pod: Pod) -> PodStatus:
        message = f"Pod was rejected: {self.text}"
        return PodStatus(phase=PodPhase.FAILED, reason=self.reason, message=message, qos_class=pod.status.qos_class)


def refusal(pod: Pod, others: Sequence[Pod], node: Node, features: Collection[str] | None) -> Refusal | None:
    """None: it is taken. `others`: the pods that take room. `features`: those that the node declares; None: nobody asks
    for them."""
    return next(_refusals(pod, others, node, features), None)


def _refusals(pod: Pod, others: Sequence[Pod], node: Node, features: Collection[str] | None) -> Iterator[Refusal]:
    if pod.labels.get(LABEL_OS, LINUX) != LINUX:
        yield Refusal("PodOSSelectorNodeLabelDoesNotMatch", _OS_LABEL)
    if pod.placement.os not in (None, LINUX):
        yield Refusal("PodOSNotSupported", _OS_FIELD)
    yield from () if is_critical(pod) else _insufficient(pod, others, node)
    fits = {
        "NodeAffinity": affinity_fits(pod, node),
        "NodeName": pod.node_name in ("", node.name),
        "NodePorts": ports_fit(pod, others),
        "TaintToleration": pod.static or taints_fit(pod, node),
    }
    for name, fit in fits.items():
        if not fit:
            yield Refusal(name, f"Predicate {name} failed: {_PREDICATES[name]}")
    missing = [] if features is None else [name for name in needed_features(pod) if name not in features]
    if missing:
        text = f"Pod requires node features that are not available: {', '.join(missing)}"
        yield Refusal("PodFeatureUnsupported", text)


def _insufficient(pod: Pod, others: Sequence[Pod], node: Node) -> Iterator[Refusal]:
    """What there is too little of. An extended resource that the node does not list is one of the cluster, which
    kube-scheduler has counted: it is passed over."""
    left = allocatable(node.status.allocatable)
    if len(others) + 1 > left.get(PODS, 0):
        yield _out_of(PODS, 1, len(others), left.get(PODS, 0))
    asked = pod_requests(pod)
    used = [pod_requests(other) for other in others] if any(asked.values()) else []
    for name in (*_IN_ORDER, *sorted(asked.keys() - {*_IN_ORDER, PODS})):
        if name not in left and is_extended_resource(name):
            continue
        in_use = sum(each.get(name, 0) for each in used)
        if asked.get(name, 0) > 0 and asked[name] > left.get(name, 0) - in_use:
            yield _out_of(name, asked[name], in_use, left.get(name, 0))


def _out_of(resource: str, requested: int, used: int, capacity: int) -> Refusal:
    text = f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"
    return Refusal(f"OutOf{resource}", text)


def is_critical(pod: Pod) -> bool:
    """For such a pod a kubelet ends others; here it runs beside them, as nothing holds a pod to what it asks for."""
    return pod.static or (pod.placement.priority or 0) >= SYSTEM_CRITICAL


def needed_features(pod: Pod) -> list[str]:
    """By their names: InferForPodScheduling of component-helpers' nodedeclaredfeatures."""
    maps_users = pod.host_network and not pod.host_users
    return [*([RESTART_ALL] if all_containers_could_restart(pod) else []), *([USER_NAMESPACES] if maps_users else [])]
