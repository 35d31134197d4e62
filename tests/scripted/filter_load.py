"""Callers like kube-scheduler: kept connections, a second's patience, no second try; and what went wrong for them."""

import http.client
import json
import ssl
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

PATIENCE_S = 1.0  # httpTimeout of the playbook's registration
# Pauses between two calls: back to back, as a scheduler with work does, and as one that has little.
PAUSES_S = (0.0, 0.05, 0.7)


NEW = " on a new connection"


@dataclass
class FilterLoad:
    """Calls until the end of the `with` block. failed: what a caller got instead of the right answer, in order.

    expected: NodeNames of the right answer. fresh: whether one more caller makes a new connection for each call.
    patience_s: how long a caller waits. The tests give it more: their machine has other work to do.
    """

    port: int
    names: Sequence[str]
    expected: Sequence[str]
    pauses_s: Sequence[float] = PAUSES_S
    fresh: bool = True
    tls: ssl.SSLContext | None = None
    patience_s: float = PATIENCE_S
    failed: list[str] = field(default_factory=list)
    calls: int = 0
    longest_s: float = 0.0
    connections: int = 0

    def __post_init__(self):
        pod = {"metadata": {"name": "web-1", "namespace": "default"}, "spec": {}}
        self._body = json.dumps({"Pod": pod, "NodeNames": list(self.names)}).encode()
        self._stopping = threading.Event()
        callers = [(pause_s, False) for pause_s in self.pauses_s] + [(0.02, True)] * self.fresh
        self._threads = [threading.Thread(target=self._call_on, args=caller, daemon=True) for caller in callers]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        for thread in self._threads:
            thread.join(5)

    def _call_on(self, pause_s, fresh):
        connection = self._connection()
        while not self._stopping.wait(pause_s):
            new = connection.sock is None
            self.connections += new
            began = time.monotonic()
            fault = self._fault(connection)
            took_s = time.monotonic() - began
            if fault:
                self.failed.append(f"{fault} after {took_s:.3f} s{NEW * new}")
            self.calls += 1
            self.longest_s = max(self.longest_s, took_s)
            if fresh or fault:
                connection.close()
                connection = self._connection()
        connection.close()

    def _connection(self):
        if self.tls is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.patience_s)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=self.patience_s, context=self.tls)

    def _fault(self, connection):
        try:
            connection.request("POST", "/filter", self._body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as e:
            return f"{type(e).__name__}: {e}"
        if response.status != http.HTTPStatus.OK:
            return f"{response.status} {body[:100]!r}"
        answer = json.loads(body)
        right = answer.get("NodeNames") == list(self.expected)
        return "" if right else answer.get("Error") or f"another answer, {len(answer.get('NodeNames') or ())} names"
