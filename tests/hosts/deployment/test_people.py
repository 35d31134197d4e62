"""`readygate` with a user's kubeconfig alone: the real API server's pod proxy leads to the extender on its host."""

import json
import os
import re
import subprocess
import sys

import pytest
import yaml

from kube import contract
from tests.kit.ports import free_port
from tests.kit.waiting import wait_until
from tests.testbed.hosts.hosts import Hosts

NS = contract.NAMESPACE


def readygate(hosts: Hosts, *arguments: str) -> tuple[int, str, str]:
    environ = {**os.environ, "KUBECONFIG": str(hosts.kubeconfig), "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-m", "cli", *arguments], env=environ, capture_output=True, text=True, timeout=60, check=False
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


def test_the_remedy_where_people_are_served_on_loopback_only(hosts, extender):
    """As the error says it: kubectl port-forward, and --server."""
    port = free_port()
    command = [hosts.kubectl_path(), f"--kubeconfig={hosts.kubeconfig}", "-n", NS, "port-forward", f"pod/{extender}"]
    with subprocess.Popen([*command, f"{port}:9377"], stdout=subprocess.PIPE, text=True) as forward:
        try:
            wait_until(lambda: re.search("Forwarding", forward.stdout.readline()), "the forwarded port")
            assert readygate(hosts, "status", "--server", f"http://127.0.0.1:{port}")[0] == 0
        finally:
            forward.terminate()


@pytest.mark.usefixtures("extender")
def test_who_may_not_use_the_pod_proxy_is_told_so(hosts, api):
    """The agent's account may neither list our pods nor use the proxy; the line names verb and resource."""
    path = f"/api/v1/namespaces/{NS}/serviceaccounts/{contract.NAME_AGENT}/token"
    token = api.create(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    file = hosts.kubeconfig.with_name("agent.kubeconfig")
    config = yaml.safe_load(hosts.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token["status"]["token"]}
    file.write_text(json.dumps(config))
    code, _, err = readygate(hosts, "status", "--kubeconfig", str(file))
    assert (3, 1) == (code, len(err.splitlines())), err
    assert re.search(r'cannot list resource "pods"', err), err
