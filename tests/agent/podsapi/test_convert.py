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
Words = dict[str, object]
# What only one of the two says so.
AT = {"seconds": 1795428672, "nanos": 5}, "2026-11-23T10:11:12Z"
BY_NAME = {"type": 1, "strVal": "web"}, "web"
BY_NUMBER = {"type": 0, "intVal": 80}, 80


def same(words: Words) -> tuple[Words, Words]:
    return words, words


def meta(**more: object) -> Words:
    return {**BARE, "metadata": {**META, **more}}


def spec(**more: object) -> Words:
    return {**BARE, "spec": {"nodeName": "n", "containers": [{"name": "app"}], **more}}


def container(**more: object) -> Words:
    return spec(containers=[{"name": "app", "image": "i", **more}])


def status(**more: object) -> Words:
    return {**BARE, "status": {"phase": "Running", "podIP": "10.0.0.1", "hostIP": "192.0.2.1", **more}}


def probed(handler: Words) -> Words:
    probe = {**handler, "periodSeconds": 2, "terminationGracePeriodSeconds": 4}
    probes = dict.fromkeys(("readinessProbe", "livenessProbe", "startupProbe"), probe)
    return container(ports=[{"name": "web", "containerPort": 8080}], **probes)


def by(action: str, port: object) -> Words:
    return {action: {"port": port, **({"path": "/r", "httpHeaders": [{"name": "A"}]} if action == "httpGet" else {})}}


def run(at: object) -> Words:
    container = {
        "name": "app",
        "ready": True,
        "started": True,
        "restartCount": 2,
        "containerID": "containerd://c",
        "state": {"running": {"startedAt": at}},
        "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "finishedAt": at}},
    }
    ready = {"type": "Ready", "status": "False", "reason": "R", "lastTransitionTime": at}
    return status(startTime=at, conditions=[ready], containerStatuses=[container])


PROBES = [
    pytest.param(
        probed({"handler": by(action, theirs)}), probed(by(action, ours)), id=f"a probe {action}, of a port by {what}"
    )
    for action in ("httpGet", "tcpSocket")
    for what, (theirs, ours) in (("name", BY_NAME), ("number", BY_NUMBER))
] + [
    pytest.param(probed({"handler": words}), probed(words), id=f"a probe {next(iter(words))}")
    for words in ({"grpc": {"port": 9, "service": "s"}}, {"exec": {"command": ["a", "$(B)"]}})
]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(*same(BARE), id="hardly anything"),
        pytest.param(
            *same(meta(labels={"a": "b"}, annotations={"c": "d"}, generation=3)), id="labels, annotations, a generation"
        ),
        pytest.param(
            *(meta(deletionTimestamp=at, deletionGracePeriodSeconds=30) for at in AT), id="it is being deleted"
        ),
        *PROBES,
        pytest.param(*same(container(env=ENV)), id="an environment"),
        pytest.param(
            *same(spec(readinessGates=[{"conditionType": "x"}], hostNetwork=True)),
            id="a readiness gate, on the host's network",
        ),
        pytest.param(*same(spec(initContainers=[{"name": "side", "restartPolicy": "Always"}])), id="a sidecar"),
        pytest.param(*(run(at) for at in AT), id="what its containers do"),
        pytest.param(
            *same(status(containerStatuses=[{"name": "app", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}])),
            id="a container that waits",
        ),
    ],
)
def test_a_pod_is_the_same_in_both_words(words: Words, expected: Words) -> None:
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
