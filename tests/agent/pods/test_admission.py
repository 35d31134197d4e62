"""Which pods a node refuses, in a kubelet's words."""

import pytest

from agent.model import Container, Pod, RestartRule
from agent.pods.admission import Refusal, refusal
from agent.semantics import V1_16, Semantics

ALL = (RestartRule("RestartAllContainers", "In", (1,)),)
PLAIN = Pod("u", "p", "ns", containers=(Container("c"),))
RESTARTING = Pod("u", "p", "ns", containers=(Container("c"),), init_containers=(Container("i", restart_rules=ALL),))
MAPPED = Pod("u", "p", "ns", host_network=True, host_users=False)
BOTH = Pod("u", "p", "ns", containers=(Container("c", restart_rules=ALL),), host_network=True, host_users=False)
MISSING = "Pod requires node features that are not available: "
RESTART, USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
NO_ROOM = Refusal("OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 9, capacity: 9")


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
    assert expected == refusal(pod, used, 9, semantics.declared_features)
