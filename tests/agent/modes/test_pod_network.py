"""What the check of the pod network gets of its agent: who it is, its pod's network, the page and the metrics."""

import socket

import pytest

from agent.checks.peer_answer import Board, answer_of, request_for
from agent.checks.surroundings import NoPodNetwork
from agent.modes.pod_network import answers_of, beside_pods, families_of, for_once, in_a_pod, service_of
from agent.opinion.settings import NodeSection
from agent.report.metrics import metrics_page
from agent.settings import parse
from kube.errors import CredentialsInvalid
from tools.kit.cases import cases
from tools.kit.clock import Clock

POD = parse(b"{mode: pod, checks: [{name: a, podNetwork: {}}]}", {})
CHECKS = "checks: [{name: a, podNetwork: {}}]"
NODE = parse(f"{{mode: node, node: {{name: worker-1, server: 'https://10.0.0.1:6443'}}, {CHECKS}}}".encode(), {})
IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@cases(
    "environ, expected",
    ("as the kubelet sets it", IN_A_POD, ("10.96.0.1", 443)),
    ("not in a pod", {}, None),
    ("nonsense", {**IN_A_POD, "KUBERNETES_SERVICE_PORT": "x"}, None),
)
def test_the_api_servers_service_is_that_of_the_pod(environ: dict[str, str], expected: tuple[str, int] | None) -> None:
    assert service_of(environ) == expected


def test_in_a_pod_it_is_who_the_chart_says() -> None:
    environ = {"NODE_NAME": "worker-1", "POD_NAMESPACE": "ns", "POD_IP": "10.0.0.1", "HOST_IP": "192.0.2.1"}
    found = in_a_pod(POD, environ)
    found.open_socket(socket.AF_INET, socket.SOCK_DGRAM).close()
    assert (found.node, found.namespace, found.is_asked) == ("worker-1", "ns", True)


def node() -> NodeSection:
    assert NODE.node is not None
    return NODE.node


def test_beside_pods_the_first_health_pod_is_whose_network_and_identity_count() -> None:
    found = beside_pods(node(), lambda: None, lambda _pod: pytest.fail("there is no pod"))
    with pytest.raises(CredentialsInvalid, match="this node has no health pod"):
        found.connect("readygate-agent")
    with pytest.raises(NoPodNetwork, match=r"node\.criSocket names no container runtime"):
        found.open_socket(socket.AF_INET, socket.SOCK_DGRAM)
    assert (found.node, found.is_asked) == ("worker-1", False)


def test_a_single_run_on_a_host_looks_at_no_pod_network() -> None:
    with pytest.raises(NoPodNetwork, match="--once knows no health pod"):
        for_once(NODE).open_socket(socket.AF_INET, socket.SOCK_DGRAM)


def test_other_agents_ask_at_a_page_of_its_own() -> None:
    (path, page_of), *others = answers_of(Board(Clock())).items()
    body = page_of(request_for("h", "node-1", 0)).body
    answer = answer_of(body.encode())
    assert answer is not None
    assert (path, others, answer.visitors) == ("/peer", [], 1)


def test_latency_and_loss_are_metrics() -> None:
    board = Board(Clock())
    assert families_of(board) == []
    board.tried("peer", "IPv4", "reached", 0.002)
    board.tried("peer", "IPv4", "silent", None)
    lines = metrics_page(families_of(board)).body.splitlines()
    assert 'readygate_pod_network_tries_total{leg="peer",family="IPv4",result="silent"} 1' in lines
    assert 'readygate_pod_network_seconds_count{leg="peer",family="IPv4"} 1' in lines
