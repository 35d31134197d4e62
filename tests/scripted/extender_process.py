"""The real `python -m extender` against a fake API server, spoken to over real sockets."""

import http.client
import json
import re
import signal
import socket
import time
from pathlib import Path

from tests.contract.go_types import read_filter_result
from tools.kit import brakes
from tools.kit.programs import Program
from tools.kit.waiting import PATIENT_S, wait_until

ORDINARY_POD = {"metadata": {"name": "web-1", "namespace": "default", "uid": "u"}, "spec": {"containers": []}}

START_LIMIT_S = 60.0
"""A program starts in a second or two of a processor's time, of which it may get a tenth."""


class Asked(Program):
    """One of our servers, spoken to over real sockets. It is killed at the end of its context."""

    def __exit__(self, *_):
        self.process.kill()

    @property
    def port(self):
        """0 until it listens."""
        found = re.findall(r"listening address=\"127\.0\.0\.1\" port=(\d+)", self.log)
        return int(found[-1]) if found else 0

    @property
    def lines(self):
        return self.process.lines()

    @property
    def log(self):
        return "\n".join(self.lines)

    def stop(self, number=signal.SIGTERM):
        """Exit code, and the seconds it took."""
        began = time.monotonic()
        return self.process.stop(number=number, grace_s=15), time.monotonic() - began

    def connection(self, timeout=10):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None):
        """(status, headers, body) over a connection of its own."""
        connection = self.connection()
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def post(self, value, path="/filter", headers=None):
        """value: bytes as they are, or what becomes JSON."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.request("POST", path, body, {"Content-Type": "application/json"} | (headers or {}))

    def filter(self, names=None, *, pod=ORDINARY_POD, nodes=None):
        """The answer to a good request, checked in all that every answer has in common."""
        status, headers, body = self.post({"Pod": pod, "Nodes": nodes, "NodeNames": names})
        assert (status, headers["Content-Type"], headers["Content-Length"]) == (200, "application/json", str(len(body)))
        return checked(body, names if nodes is None else None)

    def raw(self, data: bytes, timeout=10):
        """What comes back, up to the end of the connection, for bytes sent as they are."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as sock:
            sock.sendall(data)
            received = b""
            while piece := sock.recv(65536):
                received += piece
            return received

    def wait(self, condition, timeout_s=PATIENT_S):
        wait_until(condition, lambda: self.log, timeout_s=timeout_s)


class ExtenderProcess(Asked):
    """config: merged over listening on any free port, the API server's kubeconfig, and neither cap, storm nor damping.
    A context manager."""

    def __init__(self, api, folder: Path, *, config=None, environ=None, launch=None):
        base = {
            "listen": {"port": 0},
            "kubernetes": {"kubeconfig": str(api.write_kubeconfig(folder / "kubeconfig"))},
            "feed": {"socket": str(folder / "feed" / "socket")},
        }
        super().__init__("extender", brakes.off(base | (config or {})), folder, environ=environ, launch=launch)

    def __enter__(self):
        self.start()
        try:
            self.process.wait_ready(lambda: self.port, timeout_s=START_LIMIT_S)
        except BaseException:
            self.process.kill()
            raise
        return self

    def wait_ready(self, timeout_s=PATIENT_S, *, ready=True):
        expected = 200 if ready else 503
        self.wait(lambda: self.get("/readyz")[0] == expected, timeout_s)


def checked(body: bytes, names=None):
    """X6, X7, X60: Go's types; no percent sign; survivors plus refusals are what was asked, each once, in order."""
    result = read_filter_result(body)
    assert b"%" not in body
    assert result.FailedNodes == {}
    if names is not None and not result.Error:
        asked = list(dict.fromkeys(names))
        assert result.NodeNames == [name for name in asked if name not in result.FailedAndUnresolvableNodes]
        assert set(result.FailedAndUnresolvableNodes) == set(asked) - set(result.NodeNames)
    return result


def memory_mib(pid: int, key: str) -> float:
    """key: of /proc/PID/status, VmRSS or VmHWM."""
    return int(re.search(rf"{key}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def begin_peak(pid: int) -> None:
    """VmHWM begins anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
