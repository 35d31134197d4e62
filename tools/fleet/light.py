"""Nodes that only renew their Lease and their status, by the agent's own code, many in one process.

They share a client with few connections; each request has the token of its node.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from agent.kubelet.node.facts import NodeFacts
from agent.kubelet.node.lease import LeaseKeeper
from agent.kubelet.node.registration import NodeReporter
from kube.client import Client
from tools.fleet.counting import Counts
from tools.fleet.turns import Turns

THREADS = 8  # as many connections as a client keeps
LEASES = "/leases"


class Acting:
    """Credentials of the node whose turn runs in this thread."""

    def __init__(self) -> None:
        self._now = threading.local()

    def headers(self, monotonic: float) -> Mapping[str, str]:  # noqa: ARG002 - of Credentials
        return {"Authorization": f"Bearer {self._now.token}"}

    def refresh(self) -> None:
        """A token of the testbed does not change."""

    def as_node(self, token: str, turn: Callable[[], float]) -> Callable[[], float]:
        def run() -> float:
            self._now.token = token
            return turn()

        return run


class Counted:
    """A client of the API server that counts its requests and times the renewals of Leases. The part that is used."""

    def __init__(self, client: Client, counts: Counts, lock: threading.Lock) -> None:
        self._client, self._counts, self._lock = client, counts, lock

    def get(self, path: str, *, query: Mapping[str, str] | None = None, deadline_s: float | None = None) -> bytes:
        return self._timed("GET", path, lambda: self._client.get(path, query=query or {}, deadline_s=deadline_s))

    def create(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes:
        return self._timed("POST", path, lambda: self._client.create(path, body, deadline_s=deadline_s))

    def replace(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes:
        return self._timed("PUT", path, lambda: self._client.replace(path, body, deadline_s=deadline_s))

    def patch(self, path: str, body: bytes, *, content_type: str) -> bytes:
        return self._timed("PATCH", path, lambda: self._client.patch(path, body, content_type=content_type))

    def _timed(self, verb: str, path: str, call: Callable[[], bytes]) -> bytes:
        kind = "lease" if LEASES in path else "node"
        began = time.monotonic()
        cause = ""
        try:
            return call()
        except Exception as e:
            cause = type(e).__name__
            raise
        finally:
            took_s = time.monotonic() - began
            with self._lock:
                self._counts.requests[f"{verb} {kind}"] += 1
                if verb == "PUT":
                    self._counts.lease.add(took_s)
                if cause and not (kind == "lease" and cause == "NotFound") and cause != "AlreadyExists":
                    self._counts.failures[f"{verb} {kind}: {cause}"] += 1


class LightNodes:
    """`ready`: how many have reported themselves as Ready."""

    def __init__(self, client: Client, acting: Acting, facts: NodeFacts, *, duration_s: int, update_s: float) -> None:
        self.counts = Counts()
        self._lock = threading.Lock()
        self._client = Counted(client, self.counts, self._lock)
        self._acting, self._facts = acting, facts
        self._duration_s, self._update_s = duration_s, update_s
        self._reporters: list[NodeReporter] = []
        self._turns = Turns(THREADS, late=self._late, failed=self._failed)
        self.start = self._turns.start

    @property
    def ready(self) -> int:
        return sum(reporter.node is not None for reporter in self._reporters)

    def add(self, name: str, token: str, address: str, due: float) -> None:
        """The node registers at `due` (monotonic)."""
        facts = replace(self._facts, name=name, address=address, pod_cidr="")
        reporter = NodeReporter(self._client, facts, list, update_s=self._update_s)
        lease = LeaseKeeper(self._client, name, duration_s=self._duration_s)
        self._reporters.append(reporter)
        self._turns.add(self._acting.as_node(token, reporter.turn), due)
        self._turns.add(self._acting.as_node(token, lease.turn), due)

    def stop(self) -> None:
        self._turns.stop(wait_s=5.0)

    def snapshot(self) -> Counts:
        with self._lock:
            return self.counts.plus(Counts())

    def _late(self, seconds: float) -> None:
        with self._lock:
            self.counts.late.add(seconds)

    def _failed(self, error: Exception) -> None:
        with self._lock:
            self.counts.failures[f"turn: {type(error).__name__}"] += 1
