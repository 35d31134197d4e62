"""Probes that the API server would refuse, as a fake or a later one may let through: each costs its own container only.

What is said is one line without a traceback, or an event of the container; the pod's other container is probed as ever.
"""

import json
import logging
from typing import Any

import msgspec
import pytest

from agent.model import Pod, ProbeType, Result
from agent.prober.manager import ProberManager
from agent.prober.prober import Prober
from agent.prober.results import Results
from agent.processes.command import run_command
from agent.semantics import Semantics
from agent.wire.pod import parse_pod
from agent.wire.status import parse_status
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
        monkeypatch.setattr("agent.prober.worker.Worker.start", lambda _worker: None)
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


@pytest.mark.parametrize(
    ("probe", "result", "said"),
    [
        pytest.param({**TRUE, "periodSeconds": -5}, SUCCESS, None, id="a negative period"),
        pytest.param({**TRUE, "initialDelaySeconds": -5}, SUCCESS, None, id="a negative delay"),
        pytest.param({**TRUE, "failureThreshold": -1, "successThreshold": -1}, SUCCESS, None, id="negative thresholds"),
        pytest.param(
            {"exec": {"command": ["sleep", "9"]}, "timeoutSeconds": -1},
            FAILURE,
            "timed out",
            id="a command with a negative timeout",
        ),
        pytest.param({"httpGet": HERE, "timeoutSeconds": -1}, FAILURE, "deadline", id="a request with one"),
        pytest.param({"tcpSocket": HERE, "timeoutSeconds": -1}, FAILURE, "timeout", id="a connection with one"),
        pytest.param({"grpc": {"port": 1}, "timeoutSeconds": -1}, FAILURE, "timeout", id="gRPC with one"),
        pytest.param({**TRUE, "timeoutSeconds": 2**31 - 1}, SUCCESS, None, id="a timeout of decades"),
        pytest.param({**TRUE, "httpGet": HERE}, SUCCESS, None, id="a command and a request: the command counts"),
        pytest.param({}, FAILURE, "missing probe handler", id="no handler"),
        pytest.param({"exec": {}}, FAILURE, "command is empty", id="no command"),
        pytest.param({"exec": {"command": ["a\0b"]}}, FAILURE, "null", id="a null in a command"),
        pytest.param({"httpGet": {**HERE, "port": 70000}}, FAILURE, "invalid port number: 70000", id="port 70000"),
        pytest.param({"httpGet": {**HERE, "port": -1}}, FAILURE, "invalid port number: -1", id="port -1"),
        pytest.param({"httpGet": {**HERE, "port": "web"}}, FAILURE, "invalid syntax", id="a port of no name"),
        pytest.param({"httpGet": {"host": "127.0.0.1"}}, FAILURE, "invalid port number: 0", id="no port"),
        pytest.param(
            {"httpGet": {**HERE, "port": "9" * 5000}}, FAILURE, "value out of range", id="a port of 5000 digits"
        ),
        pytest.param(
            {"tcpSocket": {**HERE, "port": "9" * 19}}, FAILURE, "value out of range", id="a port of 19 digits"
        ),
        pytest.param({"tcpSocket": {**HERE, "port": ""}}, FAILURE, "invalid syntax", id="an empty port"),
        pytest.param(
            {"tcpSocket": {**HERE, "port": "\u0663"}}, FAILURE, "invalid syntax", id="a port in other figures"
        ),
        pytest.param({**TRUE, "periodSeconds": 2**31 - 1}, SUCCESS, None, id="a period of decades"),
        pytest.param({**TRUE, "periodSeconds": 0}, SUCCESS, None, id="a period of 0: the default"),
        pytest.param(
            {"httpGet": {**HERE, "httpHeaders": [{"name": "X", "value": "a\r\nEvil: 1"}]}},
            FAILURE,
            'invalid header field value for "X"',
            id="a header that is two",
        ),
        pytest.param(
            {"httpGet": {**HERE, "path": "/\r\nEvil: 1"}}, FAILURE, "/%0D%0AEvil:%201", id="a path that is two lines"
        ),
        pytest.param(
            {"exec": {"command": ["true", "x" * 200_000]}}, FAILURE, "argument list too long", id="a long word"
        ),
        pytest.param(
            {"grpc": {"port": 1, "service": "x" * 10_240}}, FAILURE, "timeout", id="a service of ten thousand letters"
        ),
        pytest.param(
            {**TRUE, "httpGet": HERE, "tcpSocket": HERE, "grpc": {"port": 1}}, SUCCESS, None, id="all handlers"
        ),
        pytest.param({**TRUE, "unknown": {"a": [None]}}, SUCCESS, None, id="a field that we do not know"),
        pytest.param({"tcpSocket": {**HERE, "port": 70000}}, FAILURE, "invalid port number", id="a connection's"),
        pytest.param({"grpc": {"port": 70000}}, FAILURE, "not valid", id="gRPC's"),
        pytest.param(
            {"httpGet": {**HERE, "scheme": "GOPHER"}}, FAILURE, "unsupported protocol", id="an unknown scheme"
        ),
        pytest.param({"httpGet": {**HERE, "scheme": "a b"}}, FAILURE, "first path segment", id="no scheme at all"),
        pytest.param({"httpGet": {**HERE, "host": "a b"}}, FAILURE, "invalid URL escape", id="no host"),
        pytest.param({"httpGet": {**HERE, "path": "\0"}}, FAILURE, "refused", id="a null in a path"),
        pytest.param(
            {"httpGet": {**HERE, "httpHeaders": [{"name": "a b", "value": "c"}]}}, FAILURE, "header", id="a bad header"
        ),
        pytest.param(
            {"tcpSocket": {**HERE, "host": "x" * 300}}, FAILURE, "dial tcp: lookup", id="a host of 300 letters"
        ),
        pytest.param(
            {"tcpSocket": {**HERE, "host": "ä" * 70}}, FAILURE, "dial tcp: lookup", id="a host of odd letters"
        ),
        pytest.param({"tcpSocket": {**HERE, "host": "a\0b"}}, FAILURE, "no such host", id="a null in a host"),
    ],
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
