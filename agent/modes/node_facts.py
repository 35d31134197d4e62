"""Mode `kubelet`: what the node is, from the settings and the machine."""

from collections.abc import Callable
from pathlib import Path

from agent.kubelet.node.facts import NodeFacts
from agent.kubelet.node.machine import machine, resources
from agent.kubelet.node.measure import Folders, Measure, PressureWatch
from agent.kubelet.node.pressure import Threshold, duration_s, thresholds_of
from agent.kubelet.node.reserved import reservation
from agent.settings import Kubelet
from agent.wire.placement_model import Taint
from agent.wire.semantics import Semantics
from component.lifecycle import StartFailed


def node_facts(kubelet: Kubelet, address: str, semantics: Semantics) -> NodeFacts:
    """Raises StartFailed where more is reserved than the machine has."""
    found = resources(Path(kubelet.root_dir), own_processes=kubelet.cri is None)
    capacity = {**found, **kubelet.capacity, "pods": str(kubelet.most_pods)}
    try:
        reserved = reservation(capacity, (kubelet.system_reserved, kubelet.kube_reserved), _thresholds(kubelet))
    except ValueError as e:
        raise StartFailed(f"{e} Reserve less (kubelet.systemReserved, kubeReserved, evictionHard)") from e
    return NodeFacts(
        name=kubelet.node_name,
        address=address,
        capacity=capacity,
        labels=kubelet.labels,
        machine=machine(),
        kubelet_version=f"{semantics.profile}-readygate",
        declared_features=semantics.declared_features,
        reserved=reserved,
        taints=tuple(Taint(taint.key, taint.value, taint.effect) for taint in kubelet.register_with_taints),
        pod_cidr=kubelet.pod_cidr or "",
    )


def pressure_watch(kubelet: Kubelet, folders: Callable[[], Folders] | None) -> PressureWatch:
    """By the kubelet's own settings; without a threshold there is nothing to watch."""
    transition_s = duration_s(kubelet.eviction_pressure_transition_period) or 0.0
    return PressureWatch(_thresholds(kubelet), transition_s, Measure(Path(kubelet.root_dir), folders=folders))


def _thresholds(kubelet: Kubelet) -> tuple[Threshold, ...]:
    given = (kubelet.eviction_hard, kubelet.eviction_soft)
    return thresholds_of(*given, kubelet.eviction_soft_grace_period, kubelet.eviction_minimum_reclaim)
