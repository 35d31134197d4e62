"""`readygate doctor` against a scripted cluster: what it reads, what it shows, its exit codes."""

import json
import signal
import socket
import subprocess
import sys
import threading

import pytest

from cli.__main__ import main
from cli.doctor.command import code_of
from cli.doctor.findings import Finding, Severity
from tests.cli.doctor.test_configz import TOLD
from tests.cli.served import NAMESPACE, Extender, serving, status_of
from tests.scripted.tls import make_authority
from tools.fakes import portforward
from tools.kit.cases import cases

PATIENT_S = 60.0  # a process that starts on a machine that others keep busy
SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/readygate-agent"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
SYSTEM_PODS = "/api/v1/namespaces/kube-system/pods"
FORWARD = f"{SYSTEM_PODS}/kube-scheduler-c1/portforward"
EXTENDERS = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/readygate-extender"
CONFIGURATION = f"/api/v1/namespaces/{NAMESPACE}/configmaps/readygate-extender-0123456789"
NODES = {"items": [{"metadata": {"name": f"w{i}"}} for i in range(9)]}
CONTROL = {"metadata": {"name": "c1", "labels": {"node-role.kubernetes.io/control-plane": ""}}}
SCHEDULER = {
    "metadata": {"name": "kube-scheduler-c1"},
    "spec": {
        "nodeName": "c1",
        "containers": [{"image": "registry.example/kube-scheduler:v1.36.3", "command": ["kube-scheduler", "--v=2"]}],
    },
}
HEALTH_SET = {
    "metadata": {"name": "readygate-agent"},
    "spec": {
        "minReadySeconds": 60,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
        "template": {"spec": {"containers": [{"name": "agent", "readinessProbe": {"httpGet": {}}}]}},
    },
    "status": {"desiredNumberScheduled": 10},
}


VOLUMES = [{"name": "account"}, {"name": "config", "configMap": {"name": "readygate-extender-0123456789"}}]
NAMING = {"spec": {"template": {"spec": {"volumes": VOLUMES}}}}


class OurPod(Extender):
    """An extender whose pod is selected as an extender and as a health pod of its gate."""

    def pod(self):
        return super().pod() | {
            "metadata": {
                "name": self.name,
                "namespace": NAMESPACE,
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True}],
            },
            "spec": {"nodeName": "c1", "containers": [{"image": "i"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }


@pytest.fixture
def whole(cluster):
    """A healthy cluster. `cluster.scheduler` is the URL of its kube-scheduler."""
    cluster.extenders = [OurPod("readygate-extender-a", gates={"gates": [{"gate": "health", "nodes": 10}]})]
    cluster.objects = {
        "/version": {"gitVersion": "v1.36.3"},
        "/api/v1/nodes": {"items": [*NODES["items"], CONTROL]},
        SYSTEM_PODS: {"items": [SCHEDULER]},
        SETS: HEALTH_SET,
        REVIEWS: {"status": {"allowed": True}},
        EXTENDERS: NAMING,
        CONFIGURATION: {"data": {"extender.yaml": ""}},
    }
    cluster.any_selector = True
    with serving(lambda *_: (200, json.dumps(TOLD).encode())) as url:
        cluster.scheduler = url
        yield cluster


def doctor(capsys, *arguments):
    code = main(["doctor", "-o", "json", *arguments])
    told = json.loads(capsys.readouterr().out)
    return code, [(one["severity"], one["name"]) for one in told["findings"] if one["name"] != "batching-off"]


def test_a_healthy_cluster_has_no_findings(whole, capsys):
    assert (0, []) == doctor(capsys, "--scheduler", whole.scheduler)


@cases(
    "path, answer, expected",
    ("no DaemonSet", SETS, status_of(404, "NotFound", "none"), ("error", "no-health-daemonset")),
    ("a DaemonSet not for us", SETS, status_of(403, "Forbidden", "not you"), ("unknown", "unread")),
    ("an account without rights", REVIEWS, {"status": {"allowed": False}}, ("error", "right-missing")),
    ("an answer that is none", REVIEWS, (200, b"<"), ("unknown", "unread")),
    ("a wrong file", CONFIGURATION, {"data": {"extender.yaml": "gate: x"}}, ("unknown", "configuration-unread")),
    ("static pods", EXTENDERS, status_of(404, "NotFound", "none"), ("unknown", "configuration-unread")),
    ("a DaemonSet of another kind", EXTENDERS, {}, ("unknown", "configuration-unread")),
    ("no ConfigMap", CONFIGURATION, status_of(404, "NotFound", "none"), ("unknown", "configuration-unread")),
    ("an old API server", "/version", {"gitVersion": "v1.20.1"}, ("warning", "version-unsupported")),
)
def test_an_answer_leads_to_its_finding(whole, capsys, path, answer, expected):
    whole.objects[path] = answer
    _, found = doctor(capsys, "--scheduler", whole.scheduler)
    assert expected in found


def test_what_the_agents_pods_cannot_examine_is_read_of_their_configuration(whole, capsys):
    volumes = [{"name": "config", "configMap": {"name": "readygate-agent-0123456789"}}]
    pods = HEALTH_SET["spec"]["template"]["spec"] | {"volumes": volumes}
    whole.objects[SETS] = HEALTH_SET | {"spec": HEALTH_SET["spec"] | {"template": {"spec": pods}}}
    whole.objects[CONFIGURATION.replace("extender", "agent")] = {"data": {"agent.yaml": "profile: {name: default}"}}
    assert (0, [("note", "not-examined")]) == doctor(capsys, "--scheduler", whole.scheduler)


def test_a_missing_extender_is_a_finding(whole, capsys):
    whole.extenders = []
    code, found = doctor(capsys, "--scheduler", whole.scheduler)
    assert (1, True) == (code, ("error", "no-extender") in found)


@pytest.mark.parametrize(
    ("path", "missed"),
    [
        pytest.param(f"/api/v1/namespaces/{NAMESPACE}/pods", "no-extender", id="pods of readygate"),
        pytest.param(SYSTEM_PODS, "no-scheduler-found", id="pods of kube-system"),
    ],
)
@pytest.mark.parametrize(
    "answer",
    [status_of(403, "Forbidden", "not you"), status_of(500, "InternalError", "etcd")],
    ids=["no right", "the API server fails"],
)
def test_an_unread_list_does_not_count_as_empty(whole, capsys, path, missed, answer):
    whole.objects[path] = answer
    _, found = doctor(capsys)
    names = [name for _, name in found]
    assert (False, True) == (missed in names, "unread" in names), found


def test_static_pods_are_examined_with_a_copy_of_their_configuration(whole, capsys, tmp_path):
    whole.objects[EXTENDERS] = status_of(404, "NotFound", "none")
    (copy := tmp_path / "extender.yaml").write_text("cap: {cluster: null}\n")
    found = doctor(capsys, "--scheduler", whole.scheduler, "--config", str(copy))
    assert (1, [("warning", "no-cap")]) == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(None, "cannot read {}: No such file or directory; name an existing file", id="no file"),
        pytest.param("gate: x", "{}: gate: unknown key, allowed: listen, ", id="a file of another kind"),
    ],
)
def test_an_invalid_copy_is_wrong_usage(capsys, tmp_path, text, expected):
    path = tmp_path / "extender.yaml"
    if text is not None:
        path.write_text(text)
    code = main(["doctor", "--config", str(path)])
    said = capsys.readouterr().err
    assert (2, True, 1) == (code, said.startswith(f"readygate doctor: {expected.format(path)}"), said.count("\n")), said


def test_a_scheduler_on_loopback_is_read_by_port_forward_over_tls_without_the_token(whole, capsys, tmp_path):
    seen = []

    def configz(target, headers):
        seen.append((target, headers["Authorization"]))
        return 200, json.dumps(TOLD).encode()

    with serving(configz, tls=make_authority(tmp_path).server_context()) as url:
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        ports = []

        def connect(port):
            ports.append(port)
            return socket.create_connection(address)

        whole.objects[FORWARD] = lambda handler: portforward.forward(handler, connect)
        assert (0, []) == doctor(capsys)
    assert ([10259], [("/configz", None)]) == (ports, seen)


@cases(
    "forward, expected",
    (
        "no right to forward ports",
        status_of(403, "Forbidden", 'cannot create resource "pods/portforward"'),
        "the rights needed are get and, from Kubernetes 1.35 on, create on pods/portforward",
    ),
    ("no process", portforward.complaining(portforward.REFUSED), "nothing listens at port 10259 of kube-scheduler-c1"),
    ("no kubelet", status_of(500, "InternalError", "error dialing backend: refused"), "the kubelet of c1"),
)
def test_a_scheduler_whose_port_cannot_be_forwarded_is_unread_with_the_cause(whole, capsys, forward, expected):
    whole.objects[FORWARD] = forward
    assert main(["doctor", "-o", "json"]) == 3
    (found,) = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["name"] == "scheduler-unread"]
    assert expected in found["evidence"]


@pytest.mark.parametrize(("end", "expected"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "Ctrl-C"])
def test_a_signal_ends_the_command_while_a_port_is_being_forwarded(whole, end, expected):
    """As a process of its own; the kubelet never answers."""
    asked = threading.Event()
    stalled = portforward.Stalled(accepts=True)

    def forward(handler):
        asked.set()
        stalled(handler)

    whole.objects[FORWARD] = forward
    with subprocess.Popen([sys.executable, "-m", "cli", "doctor"], stderr=subprocess.PIPE, text=True) as ran:
        assert asked.wait(PATIENT_S)
        ran.send_signal(end)
        _, said = ran.communicate(timeout=100)
    stalled.release()
    assert (expected, "") == (ran.returncode, said)


def test_the_page_shows_finding_evidence_and_remedy(whole, capsys):
    whole.objects["/version"] = {"gitVersion": "v1.38.0"}
    assert main(["doctor", "--scheduler", whole.scheduler]) == 1
    assert capsys.readouterr().out == (
        "1 warning, 1 note; checked 10 nodes, 1 extender, the configuration of 1 of 1 schedulers.\n"
        "\n"
        "WARNING version-unsupported: API server\n"
        "  it is v1.38.0; tested versions are 1.35 to 1.37\n"
        "  remedy: update readygate or the cluster, or try it in shadow first\n"
        "\n"
        f"NOTE batching-off: {whole.scheduler}\n"
        "  an extender switches off opportunistic batching (feature gate OpportunisticBatching) in every profile\n"
        "  remedy: nothing to do; it matters for large jobs of equal pods\n"
    )


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_no_line_of_the_page_is_wider_than_the_terminal(whole, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    whole.objects["/version"] = {"gitVersion": "v1.38.0"}
    assert main(["doctor", "--scheduler", whole.scheduler]) == 1
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > columns] == []


@pytest.mark.parametrize(
    ("severities", "expected"),
    [
        ([], 0),
        ([Severity.NOTE], 0),
        ([Severity.NOTE, Severity.UNKNOWN], 3),
        ([Severity.UNKNOWN, Severity.WARNING], 1),
        ([Severity.ERROR], 1),
    ],
)
def test_the_exit_code_follows_the_worst_finding(severities, expected):
    found = [Finding(severity, "n", "a", "e", "r") for severity in severities]
    assert expected == code_of(found)
