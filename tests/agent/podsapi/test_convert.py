"""A pod in the kubelet's words is the pod that the API server's JSON is: the same model of both."""

import json

import msgspec
import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message import DecodeError

from agent.podsapi.api_pb2 import Pod
from agent.podsapi.convert import pod_of
from agent.wire.pod import parse_pod, pod_from_object

OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "health", "uid": "d", "controller": True}
META = {"name": "health-1", "namespace": "ns", "uid": "u-1", "resourceVersion": "7", "ownerReferences": [OWNER]}
BARE = {"metadata": META, "spec": {"nodeName": "n", "containers": [{"name": "app"}]}}
ENV = [
    {"name": "B", "value": "b"},
    {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
]
SECOND, AT = "2026-11-23T10:11:12Z", {"seconds": 1795428672, "nanos": 5}


def container(**more: object) -> dict[str, object]:
    return {**BARE, "spec": {"nodeName": "n", "containers": [{"name": "app", "image": "i", **more}]}}


def status(**more: object) -> dict[str, object]:
    return {**BARE, "status": {"phase": "Running", "podIP": "10.0.0.1", "hostIP": "192.0.2.1", **more}}


def text(value: str) -> dict[str, object]:
    return {"type": 1, "strVal": value}


def number(value: int) -> dict[str, object]:
    return {"type": 0, "intVal": value}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(BARE, BARE, id="hardly anything"),
        pytest.param(
            {**BARE, "metadata": {**META, "labels": {"a": "b"}, "annotations": {"c": "d"}, "generation": 3}},
            {**BARE, "metadata": {**META, "labels": {"a": "b"}, "annotations": {"c": "d"}, "generation": 3}},
            id="labels, annotations, a generation",
        ),
        pytest.param(
            {**BARE, "metadata": {**META, "deletionTimestamp": AT, "deletionGracePeriodSeconds": 30}},
            {**BARE, "metadata": {**META, "deletionTimestamp": SECOND, "deletionGracePeriodSeconds": 30}},
            id="it is being deleted",
        ),
        pytest.param(
            container(
                ports=[{"name": "web", "containerPort": 8080}],
                readinessProbe={
                    "handler": {"httpGet": {"path": "/r", "port": text("web"), "httpHeaders": [{"name": "A"}]}},
                    "periodSeconds": 2,
                    "terminationGracePeriodSeconds": 4,
                },
            ),
            container(
                ports=[{"name": "web", "containerPort": 8080}],
                readinessProbe={
                    "httpGet": {"path": "/r", "port": "web", "httpHeaders": [{"name": "A"}]},
                    "periodSeconds": 2,
                    "terminationGracePeriodSeconds": 4,
                },
            ),
            id="a probe over HTTP, of a port by name",
        ),
        pytest.param(
            container(
                readinessProbe={"handler": {"tcpSocket": {"port": number(80)}}},
                livenessProbe={"handler": {"grpc": {"port": 9, "service": "s"}}},
                startupProbe={"handler": {"exec": {"command": ["a", "$(B)"]}}},
                env=ENV,
            ),
            container(
                readinessProbe={"tcpSocket": {"port": 80}},
                livenessProbe={"grpc": {"port": 9, "service": "s"}},
                startupProbe={"exec": {"command": ["a", "$(B)"]}},
                env=ENV,
            ),
            id="probes of the other kinds",
        ),
        pytest.param(
            {**BARE, "spec": {**BARE["spec"], "readinessGates": [{"conditionType": "x"}], "hostNetwork": True}},
            {**BARE, "spec": {**BARE["spec"], "readinessGates": [{"conditionType": "x"}], "hostNetwork": True}},
            id="a readiness gate, on the host's network",
        ),
        pytest.param(
            {**BARE, "spec": {**BARE["spec"], "initContainers": [{"name": "side", "restartPolicy": "Always"}]}},
            {**BARE, "spec": {**BARE["spec"], "initContainers": [{"name": "side", "restartPolicy": "Always"}]}},
            id="a sidecar",
        ),
        pytest.param(
            status(
                startTime=AT,
                conditions=[{"type": "Ready", "status": "False", "reason": "R", "lastTransitionTime": AT}],
                containerStatuses=[
                    {
                        "name": "app",
                        "ready": True,
                        "started": True,
                        "restartCount": 2,
                        "containerID": "containerd://c",
                        "state": {"running": {"startedAt": AT}},
                        "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "finishedAt": AT}},
                    }
                ],
            ),
            status(
                startTime=SECOND,
                conditions=[{"type": "Ready", "status": "False", "reason": "R", "lastTransitionTime": SECOND}],
                containerStatuses=[
                    {
                        "name": "app",
                        "ready": True,
                        "started": True,
                        "restartCount": 2,
                        "containerID": "containerd://c",
                        "state": {"running": {"startedAt": SECOND}},
                        "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "finishedAt": SECOND}},
                    }
                ],
            ),
            id="what its containers do",
        ),
        pytest.param(
            status(containerStatuses=[{"name": "app", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]),
            status(containerStatuses=[{"name": "app", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]),
            id="a container that waits",
        ),
    ],
)
def test_a_pod_is_the_same_in_both_words(words: dict[str, object], expected: dict[str, object]) -> None:
    raw = ParseDict(words, Pod()).SerializeToString()
    assert parse_pod(json.dumps(expected).encode()) == pod_from_object(pod_of(raw))


def test_fields_of_which_we_know_nothing_are_skipped() -> None:
    raw = ParseDict(BARE, Pod()).SerializeToString() + b"\xfa\x3e\x03new"  # field 1007
    assert "u-1" == pod_of(raw).metadata.uid


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"\xff\xff\xff", id="no message at all"),
        pytest.param(b"\x0a\x04\x0a\x02\xff\xfe", id="a name that is no text"),
        pytest.param(b"", id="no pod"),
        pytest.param(
            ParseDict({**BARE, "status": {"startTime": {"seconds": 2**62}}}, Pod()).SerializeToString(),
            id="a time beyond all years",
        ),
    ],
)
def test_what_is_no_pod_is_refused(raw: bytes) -> None:
    with pytest.raises((DecodeError, msgspec.DecodeError, ValueError, OverflowError, OSError)):
        pod_of(raw)
