"""The table of pods and which changes concern the sync loop."""

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from agent.kubelet.pods.source import PodTable, concerns_sync
from agent.kubelet.status.manager import StatusManager
from agent.wire.model import ContainerStatus, Pod, PodPhase, PodStatus
from agent.wire.pod import PodObject
from agent.wire.semantics import Semantics
from tests.agent.kubelet.status.builders import NOW, condition, make_pod
from tests.agent.kubelet.status.scene import FakeClient, as_json
from tools.kit.clock import Clock


def pod_object(uid: str, **spec: object) -> PodObject:
    raw = {"metadata": {"name": uid, "namespace": "default", "uid": uid}, "spec": spec}
    return msgspec.json.decode(json.dumps(raw).encode(), type=PodObject)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def table(told: list[str]) -> PodTable:
    return PodTable(told.append, Semantics())


def test_a_list_tells_of_what_came_and_what_went(table: PodTable, told: list[str]) -> None:
    table.replace([pod_object("a"), pod_object("b")])
    told.clear()
    table.replace([pod_object("b"), pod_object("c")])
    assert ({"a", "c"}, {"b", "c"}) == (set(told), table.uids())


def test_events(table: PodTable, told: list[str]) -> None:
    table.upsert(pod_object("a"))
    table.upsert(pod_object("a"))
    table.upsert(pod_object("a", nodeName="node-1"))
    table.remove(pod_object("a"))
    table.remove(pod_object("a"))
    assert (["a", "a", "a"], None) == (told, table.pod_by_uid("a"))


def test_mp10_an_annotation_of_anybodys_makes_no_pod_static(table: PodTable) -> None:
    meta = {"name": "a", "uid": "a", "annotations": {"kubernetes.io/config.source": "file", "x": "y"}}
    table.upsert(msgspec.json.decode(json.dumps({"metadata": meta}).encode(), type=PodObject))
    pod = table.pod_by_uid("a")
    assert pod is not None
    assert (False, "a") == (pod.static, table.status_uid("a"))
    assert {"kubernetes.io/config.source": "api", "x": "y"} == pod.annotations


def test_mp10_its_status_is_written_and_its_deletion_ends(table: PodTable) -> None:
    given = make_pod("c1", annotations={"kubernetes.io/config.source": "file"}, deletion_timestamp=NOW)
    client = FakeClient(given)
    statuses = StatusManager(client, table, lambda _uid: False, Semantics(), wall=Clock(NOW), monotonic=Clock(NOW))
    table.upsert(msgspec.json.decode(as_json(given), type=PodObject))
    pod = table.pod_by_uid(given.uid)
    assert pod is not None
    statuses.set_pod_status(pod, PodStatus(phase=PodPhase.SUCCEEDED))
    statuses.terminate_pod(pod)
    statuses.sync_batch(everything=False)
    assert ["GET", "PATCH", "DELETE"] == client.actions


def test_a_pod_that_cannot_be_decoded_costs_only_itself(
    table: PodTable, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    bad = msgspec.json.decode(
        b'{"metadata": {"name": "x", "uid": "bad"}, "status": {"startTime": "soon"}}', type=PodObject
    )
    table.replace([bad, pod_object("a")])
    table.upsert(bad)
    assert ({"a"}, ["a"]) == (table.uids(), told)
    assert "pod could not be decoded" in caplog.text


def test_a_known_pod_that_can_no_longer_be_decoded_stays_as_it_was(table: PodTable, told: list[str]) -> None:
    table.upsert(pod_object("a"))
    bad = msgspec.json.decode(
        b'{"metadata": {"name": "a", "uid": "a"}, "status": {"startTime": "soon"}}', type=PodObject
    )
    table.replace([bad])
    assert (["a"], {"a"}) == (told, table.uids())


GATED = replace(
    make_pod("c", readiness_gates=("gate",)),
    status=PodStatus(
        phase=PodPhase.RUNNING,
        conditions=(condition("Ready", "True"), condition("gate", "True")),
        container_statuses=(ContainerStatus("c", ready=True),),
    ),
)


def with_status(pod: Pod, **fields: Any) -> Pod:
    return replace(pod, status=replace(pod.status, **fields))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(make_pod("c"), make_pod("c"), False, id="nothing"),
        pytest.param(make_pod("c"), make_pod("c", deletion_timestamp=1.0), True, id="deletion"),
        pytest.param(make_pod("c"), make_pod("c", labels={"a": "1"}), True, id="labels"),
        pytest.param(make_pod("c"), with_status(make_pod("c"), phase=PodPhase.RUNNING), False, id="our own write"),
        pytest.param(
            make_pod("c"), with_status(make_pod("c"), phase=PodPhase.FAILED), False, id="PW17 failed by another client"
        ),
        pytest.param(GATED, GATED, False, id="a gate that agrees with Ready"),
        pytest.param(
            GATED,
            with_status(GATED, conditions=(condition("Ready", "True"), condition("gate", "False"))),
            True,
            id="a gate that turned False",
        ),
    ],
)
def test_what_concerns_the_sync_loop(old: Pod, new: Pod, expected: object) -> None:
    assert expected is concerns_sync(old, new, Semantics())
