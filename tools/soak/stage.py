"""What rows share: an extender with its fake API server, a caller that counts as kube-scheduler does, figures."""

import contextlib
import http.client
import json
import os
import re
import select
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.status_api_process import StatusApiProcess
from tools.bench.figures import quantile
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import children

DEPLOYED = Path(__file__).resolve().parents[2] / "deploy" / "base" / "extender.yaml"
SCHEDULER_TIMEOUT_S = 1.0  # httpTimeout, as the playbooks write it
SCHEDULER_IDLE_S = 90.0  # its transport closes a connection that was idle for so long
NAMES = 812  # what kube-scheduler asks about in a cluster of 5,000 nodes, by its default sample


@dataclass
class Calls:
    """seconds: of each call, the failed ones too. failures: what went wrong, by word."""

    seconds: list[float] = field(default_factory=list)
    failures: dict[str, int] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        return sum(self.failures.values())

    def ms(self, fraction: float) -> float:
        return quantile(self.seconds, fraction) * 1000 if self.seconds else 0.0

    def fail(self, word: str) -> None:
        self.failures[word] = self.failures.get(word, 0) + 1


class Caller:
    """kube-scheduler's side of a filter call: a kept connection, closed when idle too long, no POST sent twice."""

    def __init__(self, port: int, names: Sequence[str], *, timeout_s: float = SCHEDULER_TIMEOUT_S) -> None:
        pod = {"metadata": {"name": "web", "namespace": "default", "uid": "u"}, "spec": {}}
        self.calls = Calls()
        self._body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": list(names)}).encode()
        self._port, self._timeout_s = port, timeout_s
        self._connection: http.client.HTTPConnection | None = None
        self._used = 0.0

    def ask(self) -> dict[str, object] | None:
        """The answer, None when there was none in time."""
        began = time.monotonic()
        if self._connection is not None and (
            began - self._used >= SCHEDULER_IDLE_S or is_closed(self._connection.sock)
        ):
            self.close()  # Go's transport reads all the time, so it knows of an end before it writes
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=self._timeout_s)
            self._connection.request("POST", "/filter", self._body, {"Content-Type": "application/json"})
            reply = self._connection.getresponse()
            answer = reply.read()
        except (OSError, http.client.HTTPException) as e:
            self.close()
            self.calls.fail(type(e).__name__)
            self.calls.seconds.append(time.monotonic() - began)
            return None
        self._used = time.monotonic()
        self.calls.seconds.append(self._used - began)
        if reply.will_close:
            self.close()
        decoded: dict[str, object] = json.loads(answer) if reply.status == 200 else {}
        if reply.status != 200 or decoded.get("Error"):
            self.calls.fail(f"{reply.status} {decoded.get('Error', '')}".strip())
        return decoded

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def is_closed(sock: socket.socket) -> bool:
    """By the other side; what has come is left unread."""
    try:
        readable, _, _ = select.select([sock], [], [], 0)
        return bool(readable) and sock.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True


@contextlib.contextmanager
def extender(
    folder: Path, *, nodes: int = NAMES, config: Mapping[str, object] | None = None, shipped: bool = False
) -> Iterator[tuple[ExtenderProcess, FakeApiServer, list[str]]]:
    """Synced; every fourth node is closed. With it the API server and the nodes' names. shipped: as of as_shipped(),
    with the process of the people beside it; the brakes may then open what is closed."""
    with FakeApiServer() as api, contextlib.ExitStack() as beside:
        names = fill(api, nodes)
        process = ExtenderProcess(api, folder, config=config)
        if shipped:
            process.settings = as_shipped(process.settings)
        with process:
            process.wait_ready(30.0)
            if shipped:
                status_api = beside.enter_context(StatusApiProcess(process.settings, folder))
                status_api.wait(status_api.ready, timeout_s=30.0)
            yield process, api, names


def as_shipped(own: Mapping[str, object]) -> dict[str, object]:
    """The configuration that is deployed, but armed, at the address and with the API server and socket of `own`."""
    texts = yaml.safe_load_all(DEPLOYED.read_text())
    config = next(one["data"]["extender.yaml"] for one in texts if one["kind"] == "ConfigMap")
    settings: dict[str, object] = yaml.safe_load(config)
    gates = [gate | {"enforcement": "armed"} for gate in settings["gates"]]  # type: ignore[attr-defined]
    return settings | {key: own[key] for key in ("listen", "kubernetes", "feed")} | {"gates": gates}


def fill(api: FakeApiServer, nodes: int) -> list[str]:
    """Nodes with their health pods, every fourth of which is not Ready. Their names."""
    names = [f"node-{number:04}" for number in range(nodes)]
    for number, name in enumerate(names):
        api.put(node_json(name, Ready="True"))
        api.put(pod_json(name, Ready="False" if number % 4 == 0 else "True"))
    return names


def pids(process: ExtenderProcess) -> list[int]:
    pid = process.process.pid
    return [] if pid is None else [pid, *children(pid)]


def rss_mib(process: ExtenderProcess) -> float:
    """Of all its processes together."""
    return sum(_status_mib(pid, "VmRSS") for pid in pids(process))


def peak_mib(process: ExtenderProcess) -> float:
    return sum(_status_mib(pid, "VmHWM") for pid in pids(process))


def cpu_s(process: ExtenderProcess) -> float:
    """User and system time so far, of all its processes."""
    return sum(_cpu_s(pid) for pid in pids(process))


def descriptors(process: ExtenderProcess) -> int:
    """Of the worker: a connection each, and what it has beside them."""
    _, *workers = pids(process)
    with contextlib.suppress(OSError):
        return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in workers)
    return 0


def tracebacks(process: ExtenderProcess) -> int:
    return sum("Traceback" in line or " ERROR " in line for line in process.lines)


def _cpu_s(pid: int) -> float:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _status_mib(pid: int, name: str) -> float:
    with contextlib.suppress(OSError):
        found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        return int(found[1]) / 1024 if found else 0.0
    return 0.0
