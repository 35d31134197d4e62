"""The check `reader` takes the word of another agent, and its silence for nothing."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agent.checks.builtin.reader import LIMIT_BYTES, Check, Settings
from agent.checks.catalogue import CheckSpec
from agent.checks.engine import CheckEngine
from agent.checks.state import CheckState, Finding, Severity, Thresholds
from agent.modes.pod import checks_page
from agent.report.server import HealthServer
from tools.kit.ports import free_port
from tools.kit.waiting import wait_until

ONE = Thresholds(success=1, failure=1)


def found(port: int, timeout_s: float = 5.0) -> Finding:
    return Check(Settings(port), timeout_s)()


@contextmanager
def reading(**findings: tuple[Severity, Finding]) -> Iterator[int]:
    """A real agent's checks and its server; its port."""
    specs = [
        CheckSpec(name, lambda finding=finding: finding, severity=severity, thresholds=ONE, period_s=3600.0)
        for name, (severity, finding) in findings.items()
    ]
    engine = CheckEngine(specs)
    server = HealthServer("127.0.0.1", 0, {"/checks": lambda: checks_page(engine)})
    engine.start()
    server.start()
    try:
        wait_until(lambda: all(one.status.state is not CheckState.STARTING for one in engine.shown()))
        yield server.port
    finally:
        server.stop()
        engine.stop()


PASSES, FAILS = Finding(CheckState.PASSED, "fine"), Finding(CheckState.FAILED, "soft lockup on CPU 3")
LEFT_OUT = Finding(CheckState.NOT_APPLICABLE, "nothing to count")
GATE, WARN = Severity.GATE, Severity.WARN


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        pytest.param({"a": (GATE, PASSES)}, Finding(CheckState.PASSED, "its checks passed (1)"), id="all passes"),
        pytest.param(
            {"a": (GATE, PASSES), "log": (GATE, FAILS), "b": (WARN, FAILS)},
            Finding(CheckState.FAILED, "log failed: soft lockup on CPU 3"),
            id="one fails that closes",
        ),
        pytest.param(
            {"a": (GATE, PASSES), "b": (WARN, FAILS)},
            Finding(CheckState.WARNED, "b failed: soft lockup on CPU 3"),
            id="one fails that warns",
        ),
        pytest.param(
            {"a": (GATE, PASSES), "b": (WARN, LEFT_OUT)},
            Finding(CheckState.PASSED, "its checks passed (1)"),
            id="one is not applicable",
        ),
        pytest.param(
            {"a": (GATE, LEFT_OUT), "b": (WARN, LEFT_OUT)},
            Finding(CheckState.NOT_APPLICABLE, "none of its checks is applicable (2)"),
            id="none is applicable",
        ),
        pytest.param(
            {"a": (GATE, Finding(CheckState.WARNED, "ends in 3 days"))},
            Finding(CheckState.WARNED, "a warned: ends in 3 days"),
            id="one warns",
        ),
    ],
)
def test_its_word_is_taken(findings: dict[str, Any], expected: Finding) -> None:
    with reading(**findings) as port:
        assert expected == found(port)


def test_before_it_has_looked_nothing_is_known() -> None:
    engine = CheckEngine([CheckSpec("a", lambda: PASSES)])  # not started
    server = HealthServer("127.0.0.1", 0, {"/checks": lambda: checks_page(engine)})
    server.start()
    try:
        assert Finding(CheckState.UNKNOWN, "the reader has not looked yet") == found(server.port)
    finally:
        server.stop()


def test_where_nobody_listens_nothing_is_known() -> None:
    port = free_port()
    assert Finding(CheckState.UNKNOWN, f"the reader at port {port} does not answer: Connection refused") == found(port)


@contextmanager
def answering(said: bytes, *, ends: bool = True) -> Iterator[int]:
    """Who takes connections and says this."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kept: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                    connection.sendall(said)
                except OSError:
                    return
                if ends:
                    connection.shutdown(socket.SHUT_WR)
                kept.append(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for one in kept:
                one.close()


OK = b"HTTP/1.1 200 OK\r\n\r\n"
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
GOOD = json.dumps({"healthy": True, "reason": "ChecksPassed", "checks": []}).encode()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 404 Not Found\r\n\r\n" + GOOD, id="another program"),
        pytest.param(OK + b"ok", id="no JSON"),
        pytest.param(OK + b'{"healthy": 3}', id="other JSON"),
        pytest.param(OK + b"[" * 100_000, id="deep"),
        pytest.param(OK + GOOD[:-2], id="half of it"),
        pytest.param(SIZED % (len(GOOD) + 1) + GOOD, id="less than it has announced"),
    ],
)
def test_whoever_else_answers_says_nothing_of_the_node(said: bytes) -> None:
    with answering(said) as port:
        assert Finding(CheckState.UNKNOWN, f"at port {port} answers somebody who is no agent") == found(port)


def test_one_that_never_ends_is_not_waited_for() -> None:
    with answering(OK, ends=False) as port:
        assert Finding(CheckState.UNKNOWN, f"the reader at port {port} has not answered in time") == found(port, 0.2)


def test_more_than_an_agent_says_is_not_read() -> None:
    with answering(OK + b" " * (2 * LIMIT_BYTES) + GOOD) as port:
        assert CheckState.UNKNOWN is found(port).state


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(OK + GOOD, id="to the end of the stream"),
        pytest.param(SIZED % len(GOOD) + GOOD, id="with its length"),
        pytest.param(CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD), GOOD), id="in chunks"),
    ],
)
def test_a_good_word_is_one_however_it_is_sent(said: bytes) -> None:
    with answering(said) as port:
        assert Finding(CheckState.PASSED, "its checks passed (0)") == found(port)
