"""Kubernetes JSON <-> model."""

import json

import msgspec
import pytest

from agent.wire import model
from agent.wire.pod import parse_pod
from agent.wire.status import parse_status, write_status
from kube.times import format_micro_time, format_time, parse_time

POD = {
    "metadata": {
        "name": "p",
        "namespace": "n",
        "uid": "u",
        "generation": 3,
        "labels": {"a": "1"},
        "annotations": {"x": "y"},
        "deletionTimestamp": "2023-11-14T22:13:20Z",
        "deletionGracePeriodSeconds": 7,
        "unknown": {"deep": [1]},
    },
    "spec": {
        "nodeName": "node-1",
        "restartPolicy": "OnFailure",
        "terminationGracePeriodSeconds": 0,
        "hostNetwork": True,
        "serviceAccountName": "sa",
        "readinessGates": [{"conditionType": "readygate.dev/NodeHealthy"}],
        "initContainers": [{"name": "s", "restartPolicy": "Always"}],
        "containers": [
            {
                "name": "c",
                "image": "i:1",
                "command": ["a"],
                "args": ["b"],
                "workingDir": "/w",
                "ports": [{"containerPort": 80, "name": "http"}],
                "env": [
                    {"name": "V", "value": "1"},
                    {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                    {"name": "O", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "k", "optional": True}}},
                    {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                ],
                "readinessProbe": {
                    "httpGet": {"port": "http", "httpHeaders": [{"name": "A", "value": "b"}]},
                    "periodSeconds": 2,
                },
                "livenessProbe": {"tcpSocket": {"port": 80}, "initialDelaySeconds": 5},
                "startupProbe": {"exec": {"command": ["x"]}, "failureThreshold": 30},
                "restartPolicy": "Never",
                "restartPolicyRules": [
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}},
                    {"action": "Restart"},
                ],
            }
        ],
    },
    "status": {"phase": "Running", "qosClass": "BestEffort"},
}


def test_a_pod():
    pod = parse_pod(json.dumps(POD).encode())
    assert ("u", "p", "n", "node-1", 3) == (pod.uid, pod.name, pod.namespace, pod.node_name, pod.generation)
    assert (1_700_000_000.0, 7, 0) == (
        pod.deletion_timestamp,
        pod.deletion_grace_period_s,
        pod.termination_grace_period_s,
    )
    assert (model.RestartPolicy.ON_FAILURE, True, "sa") == (pod.restart_policy, pod.host_network, pod.service_account)
    assert (("readygate.dev/NodeHealthy",), {"a": "1"}, {"x": "y"}) == (
        pod.readiness_gates,
        pod.labels,
        pod.annotations,
    )
    assert (model.Container("s", restart_policy=model.RestartPolicy.ALWAYS),) == pod.init_containers
    assert (model.PodPhase.RUNNING, "BestEffort") == (pod.status.phase, pod.status.qos_class)


def test_a_container():
    container = parse_pod(json.dumps(POD).encode()).containers[0]
    assert ("i:1", ("a",), ("b",), "/w") == (container.image, container.command, container.args, container.working_dir)
    assert (model.ContainerPort(80, "http"),) == container.ports
    assert (
        model.EnvVar("V", "1"),
        model.EnvVar("F", field_path="metadata.name"),
        model.EnvVar("S", unsupported="secretKeyRef"),
        model.EnvVar("O", absent=True),
        model.EnvVar("R", unsupported="resourceFieldRef"),
    ) == container.env
    assert (
        model.RestartRule("Restart", "In", (42,)),
        model.RestartRule("Restart"),
    ) == container.restart_rules


def test_what_a_container_asks_of_its_node():
    resources = {"limits": {"memory": "1Gi", "cpu": 2}, "requests": {"cpu": "1500m"}, "claims": [{"name": "x"}]}
    pod = parse_pod(
        json.dumps({"metadata": {}, "spec": {"containers": [{"name": "c", "resources": resources}]}}).encode()
    )
    expected = (("limits", "cpu", "2"), ("limits", "memory", "1Gi"), ("requests", "cpu", "1500m"))
    assert expected == pod.containers[0].resources


def test_probes_get_their_defaults():
    container = parse_pod(json.dumps(POD).encode()).containers[0]
    assert model.Probe(model.HttpGetAction("http", headers=(("A", "b"),)), period_s=2) == container.readiness_probe
    assert model.Probe(model.TcpSocketAction(80), initial_delay_s=5) == container.liveness_probe
    assert model.Probe(model.ExecAction(("x",)), failure_threshold=30) == container.startup_probe


@pytest.mark.parametrize(
    ("spec", "container", "expected"),
    [
        pytest.param(
            {"securityContext": {}}, {"securityContext": {}}, ((), ()), id="what the API server writes itself"
        ),
        pytest.param(
            {"securityContext": {"runAsUser": 7}, "hostPID": True, "hostIPC": True, "runtimeClassName": "kata"},
            {},
            (("hostIPC", "hostPID", "runtimeClassName", "securityContext"), ()),
            id="of a pod",
        ),
        pytest.param(
            {
                "shareProcessNamespace": True,
                "hostUsers": False,
                "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["x"]}],
                "resourceClaims": [{"name": "gpu"}],
                "setHostnameAsFQDN": True,
                "subdomain": "s",
            },
            {},
            (
                ("hostAliases", "hostUsers", "resourceClaims", "setHostnameAsFQDN", "shareProcessNamespace"),
                (),
            ),
            id="of a pod, which an ordinary one has not",
        ),
        pytest.param(
            {"shareProcessNamespace": False, "hostUsers": True, "setHostnameAsFQDN": True, "hostname": "h"},
            {},
            ((), ()),
            id="what says what holds anyway",
        ),
        pytest.param(
            {},
            {
                "securityContext": {"privileged": True},
                "volumeMounts": [{"name": "v", "mountPath": "/data"}],
                "volumeDevices": [{"name": "v", "devicePath": "/dev/x"}],
                "envFrom": [{"configMapRef": {"name": "m"}}],
                "ports": [{"containerPort": 1, "hostPort": 1}],
            },
            ((), ("envFrom", "hostPort", "securityContext", "volumeDevices", "volumeMounts")),
            id="of a container",
        ),
        pytest.param(
            {},
            {"volumeMounts": [{"name": "t", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]},
            ((), ()),
            id="the token that every pod gets",
        ),
    ],
)
def test_what_a_pod_asks_for_that_is_not_modelled_is_told(spec, container, expected):
    whole = {"containers": [{"name": "c", "imagePullPolicy": "Never", **container}], **spec}
    found = parse_pod(json.dumps({"metadata": {"name": "n", "uid": "u"}, "spec": whole}).encode())
    assert (*expected, "Never") == (found.beyond, found.containers[0].beyond, found.containers[0].image_pull_policy)


def test_a_probe_with_a_handler_we_do_not_know_has_no_action():
    pod = {"metadata": {}, "spec": {"containers": [{"name": "c", "readinessProbe": {"other": {"port": 1}}}]}}
    assert parse_pod(json.dumps(pod).encode()).containers[0].readiness_probe == model.Probe(None)


def test_a_bare_pod_gets_the_defaults():
    pod = parse_pod(b'{"metadata":{"name":"p"}}')
    assert (model.RestartPolicy.ALWAYS, 30, (), False) == (
        pod.restart_policy,
        pod.termination_grace_period_s,
        pod.containers,
        pod.static,
    )


def test_a_pod_that_a_kubelet_has_from_a_file_is_static():
    pod = parse_pod(b'{"metadata":{"annotations":{"kubernetes.io/config.source":"file"}}}')
    assert pod.static


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"{}", id="without metadata"),
        pytest.param(b'{"metadata":{"name":1}}', id="a name that is a number"),
        pytest.param(b'{"metadata":{},"status":{"startTime":"soon"}}', id="a time that is none"),
        pytest.param(b'{"metadata":{},"spec":{"containers":[{}]}}', id="a container without a name"),
        pytest.param(b'{"metadata":{},"status":[]}', id="a status that is a list"),
    ],
)
def test_what_is_not_a_pod(raw):
    with pytest.raises(msgspec.DecodeError):
        parse_pod(raw)


STATUS = {
    "phase": "Running",
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "reason": "R",
            "message": "m",
            "lastProbeTime": None,
            "lastTransitionTime": "2023-11-14T22:13:20Z",
            "observedGeneration": 2,
        }
    ],
    "hostIP": "10.0.0.1",
    "hostIPs": [{"ip": "10.0.0.1"}],
    "podIP": "10.0.0.2",
    "podIPs": [{"ip": "10.0.0.2"}],
    "startTime": "2023-11-14T22:13:20Z",
    "qosClass": "BestEffort",
    "observedGeneration": 2,
    "containerStatuses": [
        {
            "name": "c",
            "state": {"running": {"startedAt": "2023-11-14T22:13:20Z"}},
            "lastState": {
                "terminated": {
                    "exitCode": 0,
                    "reason": "Completed",
                    "startedAt": "2023-11-14T22:13:20Z",
                    "finishedAt": None,
                    "containerID": "x://1",
                }
            },
            "ready": True,
            "started": False,
            "restartCount": 1,
            "image": "i",
            "imageID": "",
            "containerID": "x://2",
        }
    ],
    "initContainerStatuses": [
        {
            "name": "i",
            "state": {"waiting": {"reason": "PodInitializing"}},
            "lastState": {},
            "ready": False,
            "restartCount": 0,
            "image": "",
            "imageID": "",
        }
    ],
}


def test_a_status_survives_reading_and_writing():
    assert write_status(parse_status(json.dumps(STATUS).encode())) == STATUS


def test_fields_that_are_not_modelled_are_kept_as_they_came():
    status = parse_status(b'{"phase":"Running","resize":"Deferred","resourceClaimStatuses":[{"name":"a"}],"podIPs":[]}')
    assert status.extra == {"resize": b'"Deferred"', "resourceClaimStatuses": b'[{"name":"a"}]'}


def test_no_list_and_an_empty_list_are_told_apart():
    assert parse_status(b"{}").container_statuses is None
    assert parse_status(b'{"containerStatuses":[]}').container_statuses == ()


def test_times():
    assert parse_time("2023-11-14T22:13:20.5Z") == 1_700_000_000.5
    assert parse_time("2023-11-14T23:13:20+01:00") == 1_700_000_000.0
    assert format_time(1_700_000_000.9) == "2023-11-14T22:13:20Z"
    assert format_micro_time(1_700_000_000.25) == "2023-11-14T22:13:20.250000Z"
