"""The kubelet's feature gates have the defaults of the release that is followed."""

import pytest

from agent.wire.semantics import Semantics

# pkg/features/kube_features.go of v1.36.3: the name here, and whether the gate is on.
GATES = {
    "change_container_status_on_kubelet_restart": False,
    "container_restart_rules": True,
    "restart_all_containers_on_container_exits": True,
    "pod_ready_to_start_containers_condition": True,
    "pleg_on_demand_relist": True,
    "node_declared_features": True,
    "kubelet_registration_get_on_exists_only": False,
    "evented_pleg": False,
}


@pytest.mark.parametrize("gate", GATES)
def test_a_feature_gate_has_the_default_of_its_release(gate: str) -> None:
    assert GATES[gate] is getattr(Semantics(profile="v1.36.3"), gate)
