"""Modes pod and node put together and not started: whoever asks the API server by himself waits, after a boot, for the
moment that this agent has drawn."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from agent import settings
from agent.checks.state import CheckStatus, Severity
from agent.modes import node, pod, start_delay
from agent.opinion.kubelet import KubeletWatch
from agent.opinion.pods import HealthPodSource
from agent.report.condition import ConditionPublisher
from agent.report.heartbeat import Heartbeat
from agent.wire.model import Pod
from component.lifecycle import Service
from kube.reflector import Reflector
from tests.scripted.tls import make_authority
from tools.fakes.api_server import FakeApiServer
from tools.kit.clock import Clock

NOW, PAUSE_S = 1e9, 3.0


@pytest.fixture(autouse=True)
def booted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_delay, "first_pause_s", lambda _up_s, _random, is_first: PAUSE_S * is_first)
    monkeypatch.setattr("time.monotonic", Clock(NOW))


def asking(services: Iterable[Service]) -> dict[str, float]:
    """Who asks by himself: when he does first, in seconds from now."""
    found: dict[str, float] = {}
    for service in services:
        match service:
            case ConditionPublisher():
                found["condition"] = service._retry_due_at - NOW
            case Heartbeat():
                found["heartbeat"] = service._loop.first_pause_s
            case HealthPodSource():
                found |= {one.reflector.name: one.reflector._loop.first_pause_s for one in service._watched}
            case Reflector():
                found[service.name] = service._loop.first_pause_s
            case KubeletWatch():
                found["lease"] = service._lease_due_at - NOW
    return found


def test_mode_pod(tmp_path: Path) -> None:
    with FakeApiServer() as api:
        kubeconfig = api.write_kubeconfig(tmp_path / "kubeconfig")
    told = f"{{publish: true, podName: p, podNamespace: n, podUID: u}}\nkubernetes: {{kubeconfig: {kubeconfig}}}"
    services = pod.build(
        settings.parse(f"mode: pod\nchecks: [{{name: cni, cni: {{}}}}]\ncondition: {told}".encode(), {})
    )
    assert {"condition": PAUSE_S} == asking(services)


def test_mode_node(tmp_path: Path) -> None:
    folder = make_authority(tmp_path).folder
    identity = f"certificateAuthority: {folder}/ca.crt, certificate: {folder}/client.crt, key: {folder}/client.key"
    pods = "healthPods: [{namespace: a, labelSelector: x=y}, {namespace: b, labelSelector: x=y}]"
    rest = "heartbeat: {periodSeconds: 10}, podsSocket: null"
    text = f"mode: node\nnode: {{name: n, server: 'https://127.0.0.1:1', {identity}, {pods}, {rest}}}"
    taken = settings.parse(text.encode(), {})
    names = ("health-pods-0", "health-pods-1", "own-node", "lease", "heartbeat")
    assert dict.fromkeys(names, PAUSE_S) == asking(node.build(taken))
    assert taken.node is not None
    speaker = node.speaker(taken.node, node.kubelet_client(taken.node), Pod("p", "n", "u"), NOW + PAUSE_S)
    assert {"condition": PAUSE_S} == asking([speaker.publisher]), "of a pod that the kubelet has told meanwhile"


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        pytest.param({}, PAUSE_S, id="no state is kept"),
        pytest.param({"restored": {}}, PAUSE_S, id="none of this boot is kept: the host has just started"),
        pytest.param(
            {"restored": {"cni": CheckStatus("cni", Severity.GATE, since=0.0)}},
            0.0,
            id="one has run since the boot, and beaten",
        ),
    ],
)
def test_only_the_first_agent_after_a_boot_waits(states: pod.Kept, expected: float) -> None:
    assert expected == pod.first_pause_s(states)
