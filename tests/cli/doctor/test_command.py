"""`readygate doctor` against a cluster of scripted answers: what it reads, what it shows, how it ends."""

import json
import os
import signal
import subprocess
import sys

import pytest

from cli.__main__ import main
from cli.doctor import tunnel
from cli.doctor.command import code_of
from cli.doctor.findings import Finding, Severity
from tests.cli.doctor.test_configz import TOLD
from tests.cli.served import NAMESPACE, Extender, serving, status_of
from tests.kit.waiting import wait_until

PATIENT_S = 60.0  # a process that starts on a machine that others keep busy
SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/readygate-agent"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
SYSTEM_PODS = "/api/v1/namespaces/kube-system/pods"
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
    """An extender whose pod is found both by us and by the selector of its gate."""

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
    """Everything is as it shall be; the scheduler is read at `url`."""
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


def test_all_is_well(whole, capsys):
    assert (0, []) == doctor(capsys, "--scheduler", whole.scheduler)


@pytest.mark.parametrize(
    ("path", "answer", "expected"),
    [
        pytest.param(SETS, status_of(404, "NotFound", "none"), ("error", "no-health-daemonset"), id="no DaemonSet"),
        pytest.param(SETS, status_of(403, "Forbidden", "not you"), ("unknown", "unread"), id="a DaemonSet not for us"),
        pytest.param(
            REVIEWS, {"status": {"allowed": False}}, ("error", "right-missing"), id="an account without rights"
        ),
        pytest.param(REVIEWS, (200, b"<"), ("unknown", "unread"), id="an answer that is none"),
        pytest.param(
            CONFIGURATION,
            {"data": {"extender.yaml": "gate: x"}},
            ("unknown", "configuration-unread"),
            id="a wrong file",
        ),
        pytest.param(
            EXTENDERS, status_of(404, "NotFound", "none"), ("unknown", "configuration-unread"), id="static pods"
        ),
        pytest.param(EXTENDERS, {}, ("unknown", "configuration-unread"), id="a DaemonSet of another kind"),
        pytest.param(
            CONFIGURATION, status_of(404, "NotFound", "none"), ("unknown", "configuration-unread"), id="no ConfigMap"
        ),
        pytest.param("/version", {"gitVersion": "v1.20.1"}, ("warning", "version-unsupported"), id="an old API server"),
    ],
)
def test_what_one_answer_leads_to(whole, capsys, path, answer, expected):
    whole.objects[path] = answer
    _, found = doctor(capsys, "--scheduler", whole.scheduler)
    assert expected in found


def test_no_extender_is_a_finding_and_no_reason_to_end(whole, capsys):
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
def test_what_could_not_be_looked_for_is_not_missing(whole, capsys, path, missed, answer):
    whole.objects[path] = answer
    _, found = doctor(capsys)
    names = [name for _, name in found]
    assert (False, True) == (missed in names, "unread" in names), found


def test_static_pods_are_examined_by_a_copy_of_their_configuration(whole, capsys, tmp_path):
    whole.objects[EXTENDERS] = status_of(404, "NotFound", "none")
    (copy := tmp_path / "extender.yaml").write_text("cap: {cluster: null}\n")
    found = doctor(capsys, "--scheduler", whole.scheduler, "--config", str(copy))
    assert (1, [("warning", "no-cap")]) == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(None, "cannot read {}: No such file or directory; name a file that is there", id="no file"),
        pytest.param("gate: x", "{}: gate: unknown key, allowed: listen, ", id="a file of another kind"),
    ],
)
def test_a_copy_that_is_none_is_wrong_usage(capsys, tmp_path, text, expected):
    path = tmp_path / "extender.yaml"
    if text is not None:
        path.write_text(text)
    code = main(["doctor", "--config", str(path)])
    said = capsys.readouterr().err
    assert (2, True, 1) == (code, said.startswith(f"readygate doctor: {expected.format(path)}"), said.count("\n")), said


@pytest.mark.usefixtures("whole")
def test_a_scheduler_on_loopback_without_kubectl_is_unread(capsys, monkeypatch):
    monkeypatch.setattr(tunnel.shutil, "which", lambda _: None)
    code, found = doctor(capsys)
    assert (3, [("unknown", "scheduler-unread")]) == (code, found)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo 'error: no such pod' >&2; exit 1", "no such pod"),
        ("echo hello", "no answer"),
    ],
)
def test_a_kubectl_that_does_not_forward_is_told_about(tmp_path, monkeypatch, script, expected):
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f"#!/bin/sh\n{script}\n")
    kubectl.chmod(0o755)
    monkeypatch.setattr(tunnel.shutil, "which", lambda _: str(kubectl))
    with pytest.raises(tunnel.UnreadError, match=expected), tunnel.forwarded("kube-system", "p", ()):
        pass


def test_a_kubectl_that_forwards_is_ended_afterwards(tmp_path, monkeypatch):
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(
        f"#!/bin/sh\necho $$ > {tmp_path}/pid\necho 'Forwarding from 127.0.0.1:4711 -> 10259'\nexec sleep 60\n"
    )
    kubectl.chmod(0o755)
    monkeypatch.setattr(tunnel.shutil, "which", lambda _: str(kubectl))
    with tunnel.forwarded("kube-system", "p", ("--context=c",)) as url:
        pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert url == "https://127.0.0.1:4711"


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize(("end", "expected"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "Ctrl-C"])
def test_whoever_ends_it_while_kubectl_forwards_leaves_none_behind(tmp_path, monkeypatch, end, expected):
    """As a process of its own, in the middle of a port that is never forwarded."""
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text(
        f"#!/bin/sh\necho $$ > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid\nexec sleep 60\n"
    )
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{kubectl.parent}:{os.environ['PATH']}")
    with subprocess.Popen([sys.executable, "-m", "cli", "doctor"], stderr=subprocess.PIPE, text=True) as ran:
        wait_until((tmp_path / "pid").exists, "kubectl is called", timeout_s=PATIENT_S)
        ran.send_signal(end)
        _, said = ran.communicate(timeout=100)
    assert (expected, "") == (ran.returncode, said)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_the_page_says_what_why_and_what_to_do(whole, capsys):
    whole.objects["/version"] = {"gitVersion": "v1.38.0"}
    assert main(["doctor", "--scheduler", whole.scheduler]) == 1
    assert capsys.readouterr().out == (
        "1 warning, 1 note; looked at 10 nodes, 1 extender, the configuration of 1 of 1 schedulers.\n"
        "\n"
        "WARNING version-unsupported: API server\n"
        "  it is v1.38.0; known are 1.35 to 1.37\n"
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
def test_exit_codes(severities, expected):
    found = [Finding(severity, "n", "a", "e", "r") for severity in severities]
    assert expected == code_of(found)
