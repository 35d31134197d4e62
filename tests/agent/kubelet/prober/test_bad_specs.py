"""Probes that the API server would refuse, as a fake or a later one may let through: each costs its own container only.

What is said is one line without a traceback, or an event of the container; the pod's other container is probed as ever.
"""

import json
import logging
from typing import Any

import msgspec
import pytest

from agent.kubelet.prober.manager import ProberManager
from agent.kubelet.prober.prober import Prober
from agent.kubelet.prober.results import Results
from agent.processes.command import run_command
from agent.wire.model import Pod, ProbeType, Result
from agent.wire.pod import parse_pod
from agent.wire.semantics import Semantics
from agent.wire.status import parse_status
from tools.kit.cases import cases
from tools.kit.clock import Clock

TRUE = {"exec": {"command": ["true"]}}
HERE = {"host": "127.0.0.1", "port": 1}  # nobody listens there
SUCCESS, FAILURE = "success", "failure"


def pod_of(probe: Any) -> Pod:
    """Two containers, the second with a probe that is right."""
    containers = [{"name": "bad", "readinessProbe": probe}, {"name": "good", "readinessProbe": TRUE}]
    raw = {"metadata": {"uid": "u", "name": "p", "namespace": "n"}, "spec": {"containers": containers}}
    return parse_pod(json.dumps(raw).encode())


def status_of() -> Any:
    started = {"running": {"startedAt": "1970-01-01T00:16:40Z"}}
    statuses = [{"name": n, "containerID": f"test://{n}", "state": started, "started": True} for n in ("bad", "good")]
    return parse_status(json.dumps({"phase": "Running", "podIP": "127.0.0.1", "containerStatuses": statuses}).encode())


class Probed:
    """Each worker's turn, a few times; what was said."""

    def __init__(self, probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("agent.kubelet.prober.worker.Worker.start", lambda _worker: None)
        clock, status, self.events = Clock(1000.0), status_of(), []
        results = {kind: Results(lambda _update: None) for kind in ProbeType}
        execute = lambda _id, command, timeout_s: run_command(command, timeout_s=timeout_s)  # noqa: E731
        record = lambda _pod, container, *words: self.events.append((container.name, words[-1]))  # noqa: E731
        self.results = results[ProbeType.READINESS]
        self.manager = ProberManager(
            get_pod_status=lambda _uid: status,
            probe=Prober(execute, record).probe,
            readiness=results[ProbeType.READINESS],
            liveness=results[ProbeType.LIVENESS],
            startup=results[ProbeType.STARTUP],
            semantics=Semantics(),
            wall=clock,
            monotonic=clock,
        )
        self.manager.add_pod(pod_of(probe))
        for _ in range(3):
            for worker in list(self.manager._workers.values()):
                worker.do_probe()

    def result(self, container: str) -> str:
        return {Result.SUCCESS: SUCCESS, Result.FAILURE: FAILURE}.get(self.results.get(f"test://{container}"), "none")


@cases(
    "probe, result, said",
    ("a negative period", {**TRUE, "periodSeconds": -5}, SUCCESS, None),
    ("a negative delay", {**TRUE, "initialDelaySeconds": -5}, SUCCESS, None),
    ("negative thresholds", {**TRUE, "failureThreshold": -1, "successThreshold": -1}, SUCCESS, None),
    ("a negative timeout", {"exec": {"command": ["sleep", "9"]}, "timeoutSeconds": -1}, FAILURE, "timed out"),
    ("a request with one", {"httpGet": HERE, "timeoutSeconds": -1}, FAILURE, "deadline"),
    ("a connection with one", {"tcpSocket": HERE, "timeoutSeconds": -1}, FAILURE, "timeout"),
    ("gRPC with one", {"grpc": {"port": 1}, "timeoutSeconds": -1}, FAILURE, "timeout"),
    ("a timeout of decades", {**TRUE, "timeoutSeconds": 2**31 - 1}, SUCCESS, None),
    ("a command and a request: the command counts", {**TRUE, "httpGet": HERE}, SUCCESS, None),
    ("no handler", {}, FAILURE, "missing probe handler"),
    ("no command", {"exec": {}}, FAILURE, "command is empty"),
    ("a null in a command", {"exec": {"command": ["a\0b"]}}, FAILURE, "null"),
    ("port 70000", {"httpGet": {**HERE, "port": 70000}}, FAILURE, "invalid port number: 70000"),
    ("port -1", {"httpGet": {**HERE, "port": -1}}, FAILURE, "invalid port number: -1"),
    ("a port of no name", {"httpGet": {**HERE, "port": "web"}}, FAILURE, "invalid syntax"),
    ("no port", {"httpGet": {"host": "127.0.0.1"}}, FAILURE, "invalid port number: 0"),
    ("a port of 5000 digits", {"httpGet": {**HERE, "port": "9" * 5000}}, FAILURE, "value out of range"),
    ("a port of 19 digits", {"tcpSocket": {**HERE, "port": "9" * 19}}, FAILURE, "value out of range"),
    ("an empty port", {"tcpSocket": {**HERE, "port": ""}}, FAILURE, "invalid syntax"),
    ("a port in other figures", {"tcpSocket": {**HERE, "port": "\u0663"}}, FAILURE, "invalid syntax"),
    ("a period of decades", {**TRUE, "periodSeconds": 2**31 - 1}, SUCCESS, None),
    ("a period of 0: the default", {**TRUE, "periodSeconds": 0}, SUCCESS, None),
    (
        "a header that is two",
        {"httpGet": {**HERE, "httpHeaders": [{"name": "X", "value": "a\r\nEvil: 1"}]}},
        FAILURE,
        'invalid header field value for "X"',
    ),
    ("a path that is two lines", {"httpGet": {**HERE, "path": "/\r\nEvil: 1"}}, FAILURE, "/%0D%0AEvil:%201"),
    ("a long word", {"exec": {"command": ["true", "x" * 200_000]}}, FAILURE, "argument list too long"),
    ("a service of ten thousand letters", {"grpc": {"port": 1, "service": "x" * 10_240}}, FAILURE, "timeout"),
    ("all handlers", {**TRUE, "httpGet": HERE, "tcpSocket": HERE, "grpc": {"port": 1}}, SUCCESS, None),
    ("a field that we do not know", {**TRUE, "unknown": {"a": [None]}}, SUCCESS, None),
    ("a connection's", {"tcpSocket": {**HERE, "port": 70000}}, FAILURE, "invalid port number"),
    ("gRPC's", {"grpc": {"port": 70000}}, FAILURE, "not valid"),
    ("an unknown scheme", {"httpGet": {**HERE, "scheme": "GOPHER"}}, FAILURE, "unsupported protocol"),
    ("no scheme at all", {"httpGet": {**HERE, "scheme": "a b"}}, FAILURE, "first path segment"),
    ("no host", {"httpGet": {**HERE, "host": "a b"}}, FAILURE, "invalid URL escape"),
    ("a null in a path", {"httpGet": {**HERE, "path": "\0"}}, FAILURE, "refused"),
    ("a bad header", {"httpGet": {**HERE, "httpHeaders": [{"name": "a b", "value": "c"}]}}, FAILURE, "header"),
    ("a host of 300 letters", {"tcpSocket": {**HERE, "host": "x" * 300}}, FAILURE, "dial tcp: lookup"),
    ("a host of odd letters", {"tcpSocket": {**HERE, "host": "ä" * 70}}, FAILURE, "dial tcp: lookup"),
    ("a null in a host", {"tcpSocket": {**HERE, "host": "a\0b"}}, FAILURE, "no such host"),
)
def test_a_probe_that_should_not_be_costs_its_container_alone(
    probe: Any, result: str, said: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        probed = Probed(probe, monkeypatch)
    assert (result, SUCCESS) == (probed.result("bad"), probed.result("good"))
    assert [] == [record.message for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]
    texts = {text for name, text in probed.events if name == "bad"}
    assert (said is None) == (not texts)
    assert [] == [text for text in texts if said is None or said not in text or "\n" in text]


@pytest.mark.parametrize(
    "probe",
    [
        pytest.param({"periodSeconds": "soon"}, id="a period in words"),
        pytest.param({"periodSeconds": 2**31}, id="a period that 32 bits do not hold"),
        pytest.param({"timeoutSeconds": 10**400}, id="a timeout that nothing holds"),
        pytest.param({"terminationGracePeriodSeconds": 2**63}, id="a grace that 64 bits do not hold"),
        pytest.param({"httpGet": {"port": -(2**31) - 1}}, id="a port that 32 bits do not hold"),
        pytest.param({"httpGet": {"port": [1]}}, id="a list of ports"),
        pytest.param({"httpGet": 5}, id="a number for a handler"),
        pytest.param([], id="a list"),
    ],
)
def test_what_is_no_probe_is_no_pod(probe: Any) -> None:
    with pytest.raises(msgspec.DecodeError):
        pod_of(probe)
