"""The commands of docs/helm.md, run as they stand on a real API server and scheduler, but for the names of namespace
and release.

Its nodes run nothing: what a hook's pod would do there the test does as its kubelet, by the pod's own command.
"""

import os
import re
import shlex
import subprocess
import sys

import pytest
import yaml

from extender.outlets.kick import ANNOTATION_KICK
from kube import contract
from tests.charts.rendering import ROOT
from tools.kit.waiting import wait_for
from tools.testbed.plane.programs import People
from tools.testbed.shared.api import ApiError
from tools.testbed.shared.tools import HELM, built

NS = "charted"
DOCUMENT = (ROOT / "docs" / "helm.md").read_text()
INSTALL, LABEL, TEST, UPGRADE, ROLLBACK, REMOVE = re.findall(r"^\$ (.*)$", DOCUMENT, re.MULTILINE)
AGENT = f"/apis/apps/v1/namespaces/{NS}/daemonsets/{contract.NAME_AGENT}"
ACCOUNT = f"system:serviceaccount:{NS}:readygate-uninstall"
SWEEPER = f"system:serviceaccount:{NS}:readygate-sweep"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NS}/leases/{contract.NAME_EXTENDER}"
MARKS = (ANNOTATION_KICK, contract.CONDITION_NODE_HEALTHY)
LIMIT_S = 500


@pytest.fixture
def begun(cluster, tmp_path):
    """A function from a documented command to its process."""
    environ = {
        **os.environ,
        "KUBECONFIG": str(cluster.plane.kubeconfig),
        "PATH": f"{built(HELM).parent}:{cluster.plane.kubectl.parent}:{os.environ['PATH']}",
        **{f"HELM_{kind}_HOME": str(tmp_path) for kind in ("CACHE", "CONFIG", "DATA")},
    }

    def begin(command):
        return subprocess.Popen(
            shlex.split(re.sub(r"^(helm \w+) readygate", rf"\1 {NS}", command.replace(contract.NAMESPACE, NS))),
            cwd=ROOT,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return begin


@pytest.fixture
def asked(cluster):
    """An extender, people beside it, a node that it opens, and kube-scheduler, which asks it. That node's name."""
    (node,) = cluster.add_nodes(1, labels={"node-role.kubernetes.io/control-plane": ""})
    cluster.add_health_pods([node], ready=True)
    extender = cluster.start_extender()
    people = People(cluster.plane, extender)
    people.start()
    cluster.use_extender(extender.url)
    yield extender, people, node
    people.stop()


def ended(process):
    """(code, what it said)."""
    said, _ = process.communicate(timeout=LIMIT_S)
    return process.returncode, said


def bound_pod(api, selector, *, but=""):
    """The pod of a hook, once kube-scheduler has placed it. but: the name of an earlier one."""
    path = f"/api/v1/namespaces/{NS}/pods?labelSelector={contract.LABEL_NAME}%3D{selector}"

    def placed():
        return [pod for pod in api.items(path) if pod["spec"].get("nodeName") and pod["metadata"]["name"] != but]

    pods = wait_for(placed, timeout_s=200)
    assert pods, f"no pod of {selector} was placed"
    return pods[0]


def run_as_its_kubelet(api, pod, command):
    """Reports the end of the command as the pod's. What it said."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    phase = "Failed" if done.returncode else "Succeeded"
    ended = {"exitCode": done.returncode, "reason": "Error" if done.returncode else "Completed"}
    (container,) = pod["spec"]["containers"]
    of_it = {"name": container["name"], "image": container["image"], "imageID": "", "ready": False, "restartCount": 0}
    status = {"phase": phase, "containerStatuses": [of_it | {"state": {"terminated": ended}}]}
    api.patch(f"/api/v1/namespaces/{NS}/pods/{pod['metadata']['name']}/status", {"status": status})
    return done.stdout + done.stderr


def looks(pod, people):
    """The command of the guard's pod, at the test's extender."""
    (container,) = pod["spec"]["containers"]
    name = f"{NS}/{pod['metadata']['name']}"
    assert container["command"][:3] == ["readygate", "unregistered", "$(POD_NAMESPACE)/$(POD_NAME)"]
    return [sys.executable, "-m", "cli", "unregistered", name, f"--server={people.url}"]


def sweeps(pod, plane):
    """The command of the pod that takes away what is left, with the rights of its account."""
    (container,) = pod["spec"]["containers"]
    program, *words = container["command"]
    assert (program, pod["spec"]["serviceAccountName"]) == ("readygate", "readygate-sweep")
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{NS}")
    return [sys.executable, "-m", "cli", *words, f"--kubeconfig={plane.kubeconfig_for(SWEEPER, groups)}"]


def mark(api, node):
    """As extenders leave a Node, and the namespace: the pod of `helm test` is there too."""
    api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {ANNOTATION_KICK: "1", "of": "others"}}})
    conditions = [{"type": kind, "status": "True"} for kind in (contract.CONDITION_NODE_HEALTHY, "Others")]
    api.patch(f"/api/v1/nodes/{node}/status", {"status": {"conditions": conditions}})
    lease = {"metadata": {"name": contract.NAME_EXTENDER}, "spec": {"holderIdentity": ""}}
    api.create(LEASE.rpartition("/")[0], {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **lease})


def left(api, node):
    """What is there of ours on the Node and in the namespace, and of others on the Node."""
    found = api.get(f"/api/v1/nodes/{node}")
    kinds = [one["type"] for one in found["status"].get("conditions", [])]
    marks = [key for key in (*found["metadata"].get("annotations", {}), *kinds) if key in (*MARKS, "of", "Others")]
    paths = (f"/api/v1/namespaces/{NS}/pods", LEASE.rpartition("/")[0])
    return marks, [one["metadata"]["name"] for path in paths for one in api.items(path)]


def may(api, verb, resource, subresource=""):
    attributes = {"namespace": NS, "verb": verb, "resource": resource, "subresource": subresource}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": ACCOUNT, "resourceAttributes": attributes},
    }
    return api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]


def test_the_documented_way_from_install_to_removal(cluster, asked, begun):
    api = cluster.api
    extender, people, node = asked

    def period_s():
        (agent,) = api.get(AGENT)["spec"]["template"]["spec"]["containers"]
        return agent["readinessProbe"]["periodSeconds"]

    for command, expected_s in ((INSTALL, 2), (LABEL, 2), (UPGRADE, 1), (ROLLBACK, 2)):
        code, said = ended(begun(command))
        assert code == 0, said
        assert period_s() == expected_s

    test = begun(TEST)
    pod = bound_pod(api, "readygate-test")
    *program, verdicts, served = pod["spec"]["containers"][0]["command"]
    ports = (contract.PORT_DAEMON_SET, 9377)
    assert [f"http://127.0.0.1:{port}/readyz" for port in ports] == [verdicts, served]
    program = [sys.executable, *program[1:], f"{extender.url}/readyz", f"{people.url}/readyz"]
    assert "the extender gives verdicts" in run_as_its_kubelet(api, pod, program)
    assert ended(test)[0] == 0

    refused = begun(REMOVE)
    pod = bound_pod(api, "readygate-uninstall")
    rights = [may(api, "list", "pods"), *(may(api, verb, "pods", "portforward") for verb in ("create", "get"))]
    assert [True] * 3 == rights
    assert [False] * 2 == [may(api, "get", "pods", "proxy"), may(api, "get", "secrets")]
    assert "kube-scheduler still calls" in run_as_its_kubelet(api, pod, looks(pod, people))
    code, said = ended(refused)
    assert (True, True) == (code != 0, "readygate-uninstall" in said), said
    assert period_s() == 2, "nothing was removed"

    cluster.plane.restart_scheduler(cluster.plane.scheduler_config([]))
    mark(api, node)
    removed = begun(REMOVE)
    pod = bound_pod(api, "readygate-uninstall", but=pod["metadata"]["name"])
    assert "no kube-scheduler calls" in run_as_its_kubelet(api, pod, looks(pod, people))
    pod = bound_pod(api, "readygate-sweep")
    assert "swept: 1 node, and namespace" in run_as_its_kubelet(api, pod, sweeps(pod, cluster.plane))
    code, said = ended(removed)
    assert code == 0, said
    assert (["of", "Others"], []) == left(api, node)
    everywhere = [f"/apis/rbac.authorization.k8s.io/v1/clusterrole{kind}s" for kind in ("", "binding")]
    names = [one["metadata"]["name"] for path in everywhere for one in api.items(path)]
    assert [] == [name for name in names if name.startswith(NS)]
    with pytest.raises(ApiError, match="404"):
        api.get(AGENT)
    assert [] == api.items(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NS}/roles"), "nor any of the hooks' rights"


def test_the_documented_overlay_names_the_image(cluster, tmp_path):
    (text,) = re.findall(r"^```yaml\n# kustomization.yaml\n(.*?)^```", DOCUMENT, re.DOTALL | re.MULTILINE)
    base = os.path.relpath(ROOT, tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(text.replace("../readygate", base))
    argv = [str(cluster.plane.kubectl), "kustomize", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    pods = [each["spec"]["template"]["spec"] for each in yaml.safe_load_all(done.stdout) if each["kind"] == "DaemonSet"]
    assert {"registry.example/readygate:0.1.0"} == {one["image"] for pod in pods for one in pod["containers"]}
