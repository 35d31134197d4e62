"""`readygate` with a user's kubeconfig alone: the real API server and kubelet forward the extender's loopback port."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml

from kube import contract
from tests.hosts.waiting import wait_until
from tools.testbed.hosts.hosts import Hosts

NS = contract.NAMESPACE
ROOT = Path(__file__).resolve().parents[3]
YAML = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)


def readygate(hosts: Hosts, *arguments: str) -> tuple[int, str, str]:
    environ = {**os.environ, "KUBECONFIG": str(hosts.kubeconfig), "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-m", "cli", *arguments], env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def extender(api, deployed) -> str:  # noqa: ARG001
    """Name of the extender's one pod."""
    pods = api.get(f"/api/v1/namespaces/{NS}/pods?labelSelector={contract.LABEL_NAME}={contract.NAME_EXTENDER}")
    return str(pods["items"][0]["metadata"]["name"])


def test_status_needs_nothing_but_a_kubeconfig(hosts, extender):
    code, out, err = readygate(hosts, "status")
    assert (0, "", True) == (code, err, f"{len(hosts.names)} of {len(hosts.names)} nodes open" in out), out
    assert extender == json.loads(readygate(hosts, "status", "-o", "json")[1])["replica"]


@pytest.mark.usefixtures("extender")
def test_why_pod_and_why_node(hosts, api):
    node = api.get(f"/api/v1/namespaces/{NS}/pods")["items"][0]["spec"]["nodeName"]
    code, out, err = readygate(hosts, "why", "node", node)
    assert (0, f"{node} is open.", "") == (code, out.splitlines()[0], err)
    pod = api.get(f"/api/v1/namespaces/{NS}/pods")["items"][0]["metadata"]["name"]
    code, out, err = readygate(hosts, "why", "pod", f"{NS}/{pod}")
    assert (0, "", True) == (code, err, out.startswith(f"It is not Pending: it runs on {node}, bound ")), out


def kubeconfig_of(hosts: Hosts, api, account: str) -> Path:
    """A kubeconfig of a service account of readygate's namespace."""
    path = f"/api/v1/namespaces/{NS}/serviceaccounts/{account}/token"
    token = api.create(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    file = hosts.kubeconfig.with_name(f"{account}.kubeconfig")
    config = yaml.safe_load(hosts.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token["status"]["token"]}
    file.write_text(json.dumps(config))
    return file


def reader_of(verbs: list[str]) -> str:
    """An account, and the Role of docs/why.md for it with these verbs on pods/portforward."""
    shown = next(text for text in YAML.findall((ROOT / "docs" / "why.md").read_text()) if "readygate-reader" in text)
    role = yaml.safe_load(shown)
    role["rules"][1]["verbs"] = verbs
    meta = {"name": "readygate-reader", "namespace": NS}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
    binding = {
        "apiVersion": role["apiVersion"],
        "kind": "RoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "readygate-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "readygate-reader", "namespace": NS}],
    }
    return yaml.safe_dump_all([account, role, binding])


@pytest.mark.usefixtures("extender")
def test_the_documented_rights_are_enough_and_less_is_refused_with_the_rights_it_takes(hosts, api):
    hosts.kubectl("apply", "--filename=-", stdin=reader_of(["get"]))
    try:
        file = kubeconfig_of(hosts, api, "readygate-reader")
        wait_until(
            lambda: "cannot list" not in readygate(hosts, "status", "--kubeconfig", str(file))[2],
            "the API server has seen the Role",
        )
        code, _, err = readygate(hosts, "status", "--kubeconfig", str(file))
        assert (3, 1) == (code, len(err.splitlines())), err
        assert "you may not forward port 9377 of " in err
        needed = "; the rights needed are get and, from Kubernetes 1.35 on, create on pods/portforward"
        assert err.rstrip().endswith(needed)
        hosts.kubectl("apply", "--filename=-", stdin=reader_of(["get", "create"]))
        wait_until(
            lambda: readygate(hosts, "status", "--kubeconfig", str(file))[0] == 0, "the API server has seen the right"
        )
    finally:
        hosts.kubectl("delete", "--filename=-", stdin=reader_of([]))


def test_a_kubelet_that_does_not_answer_is_named_with_its_extender(hosts, extender):
    hosts.ssh("control-1", "systemctl stop kubelet")
    try:
        code, _, err = readygate(hosts, "status")
    finally:
        hosts.ssh("control-1", "systemctl start kubelet")
    assert (3, 1) == (code, len(err.splitlines())), err
    assert f"the kubelet of control-1 does not answer the API server, so {extender} cannot be reached" in err
    wait_until(lambda: readygate(hosts, "status")[0] == 0, "the kubelet forwards again")


def test_dashboard_serves_a_browser_until_it_is_ended(hosts, extender):
    environ = {**os.environ, "KUBECONFIG": str(hosts.kubeconfig)}
    command = [sys.executable, "-m", "cli", "dashboard"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as dashboard:
        try:
            url = dashboard.stdout.readline().strip()
            assert dashboard.stdout.readline().startswith(f"{extender} on control-1; ")
            with urllib.request.urlopen(url, timeout=30) as page:
                assert {*hosts.names} == {node["node"] for node in json.loads(page.read())["nodes"]}
        finally:
            dashboard.terminate()
    assert dashboard.returncode == 0


@pytest.mark.usefixtures("extender")
def test_who_may_not_list_pods_is_told_so(hosts, api):
    """The agent's account; the line names verb and resource."""
    file = kubeconfig_of(hosts, api, contract.NAME_AGENT)
    code, _, err = readygate(hosts, "status", "--kubeconfig", str(file))
    assert (3, 1) == (code, len(err.splitlines())), err
    assert re.search(r'cannot list resource "pods"', err), err
