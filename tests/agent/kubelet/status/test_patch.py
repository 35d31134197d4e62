"""Rows S92-S95, texts as in pkg/util/pod/pod_test.go of v1.36.3; the rest as CreateTwoWayMergePatch has it."""

from dataclasses import replace

import pytest

from agent.kubelet.status.patch import status_patch
from agent.wire.model import ContainerStatus, PodPhase, PodStatus
from agent.wire.status import write_status
from tests.agent.kubelet.status.builders import condition, make_status

STATUS = make_status(
    phase=PodPhase.RUNNING,
    conditions=(condition("Ready"), condition("PodScheduled")),
    container_statuses=(ContainerStatus("container1", ready=True), ContainerStatus("container2", ready=True)),
    message="Message",
)
READY_FALSE = (
    b'{"metadata":{"uid":"myuid"},"status":{"$setElementOrder/conditions":[{"type":"Ready"},{"type":"PodScheduled"}],'
    b'"conditions":[{"status":"False","type":"Ready"}]}}'
)
INIT = (
    b'{"metadata":{"uid":"myuid"},"status":{"initContainerStatuses":[{"image":"","imageID":"","lastState":{},'
    b'"name":"init-container","ready":true,"restartCount":0,"state":{}}]}}'
)


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param(STATUS, None, id="S92 no change"),
        pytest.param(
            replace(STATUS, message="random message"),
            b'{"metadata":{"uid":"myuid"},"status":{"message":"random message"}}',
            id="S93 message",
        ),
        pytest.param(
            replace(STATUS, conditions=(condition("Ready", "False"), condition("PodScheduled"))),
            READY_FALSE,
            id="S94 condition",
        ),
        pytest.param(
            replace(STATUS, init_container_statuses=(ContainerStatus("init-container", ready=True),)),
            INIT,
            id="S95 one init status added",
        ),
        pytest.param(
            replace(STATUS, message=""), b'{"metadata":{"uid":"myuid"},"status":{"message":null}}', id="a field goes"
        ),
        pytest.param(
            replace(STATUS, conditions=(condition("PodScheduled"), condition("Ready"))),
            b'{"metadata":{"uid":"myuid"},"status":{"$setElementOrder/conditions":[{"type":"PodScheduled"},{"type":"Ready"}]}}',
            id="only the order changes",
        ),
        pytest.param(
            replace(STATUS, conditions=(condition("PodScheduled"),)),
            b'{"metadata":{"uid":"myuid"},"status":{"$setElementOrder/conditions":[{"type":"PodScheduled"}],'
            b'"conditions":[{"$patch":"delete","type":"Ready"}]}}',
            id="a condition goes",
        ),
        pytest.param(
            replace(STATUS, conditions=(*STATUS.conditions, condition("Initialized"))),
            b'{"metadata":{"uid":"myuid"},"status":{"$setElementOrder/conditions":[{"type":"Ready"},{"type":"PodScheduled"},'
            b'{"type":"Initialized"}],"conditions":[{"lastProbeTime":null,"lastTransitionTime":null,"status":"True",'
            b'"type":"Initialized"}]}}',
            id="a condition comes",
        ),
        pytest.param(
            replace(STATUS, pod_ip="10.0.0.1"),
            b'{"metadata":{"uid":"myuid"},"status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}]}}',
            id="an address comes",
        ),
    ],
)
def test_patch(new: PodStatus, expected: object) -> None:
    assert expected == status_patch("myuid", write_status(STATUS), write_status(new))


def test_an_address_is_replaced_by_key() -> None:
    old, new = {"podIPs": [{"ip": "10.0.0.1"}]}, {"podIPs": [{"ip": "10.0.0.2"}]}
    expected = (
        b'{"metadata":{"uid":"u"},"status":{"$setElementOrder/podIPs":[{"ip":"10.0.0.2"}],'
        b'"podIPs":[{"ip":"10.0.0.2"},{"$patch":"delete","ip":"10.0.0.1"}]}}'
    )
    assert expected == status_patch("u", old, new)


def test_a_list_of_containers_is_replaced_whole() -> None:
    old = {"containerStatuses": [{"name": "a"}, {"name": "b"}]}
    new = {"containerStatuses": [{"name": "a"}, {"name": "b", "ready": True}]}
    expected = b'{"metadata":{"uid":"u"},"status":{"containerStatuses":[{"name":"a"},{"name":"b","ready":true}]}}'
    assert expected == status_patch("u", old, new)
