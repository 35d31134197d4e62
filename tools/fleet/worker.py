"""`python -m tools.fleet.worker --config FILE`: one process with virtual nodes, until SIGTERM.

The file is one of `Work`, as JSON. Each second the process writes `Report`, as JSON, in place of the last one.
"""

import argparse
import json
import logging
import resource
import signal
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent.modes.kubelet import semantics_of
from agent.modes.node_facts import node_facts
from component import logs
from kube.auth import Connection
from kube.client import Client
from tools.fleet.full import FullNode, block, settings_of
from tools.fleet.light import Acting, LightNodes

STACK_BYTES = 512 * 2**10
REPORT_S = 1.0
STOPPING = 32  # full nodes that are stopped at once
USER_AGENT = "readygate-fleet"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Work:
    """`nodes`: (number, name, token). `full`: they are whole agents. `ramp_s`: their registrations are spread over so
    many seconds. `report`: the file that is written."""

    server: str
    ca: str
    nodes: Sequence[tuple[int, str, str]]
    full: bool
    ramp_s: float
    lease_s: int
    status_s: int
    folder: str
    report: str


@dataclass(frozen=True)
class Report:
    """`ready`: nodes that are registered. `base_mib`, `rss_mib`: resident memory without a node, and now."""

    nodes: int
    ready: int
    base_mib: float
    rss_mib: float
    threads: int
    counts: dict[str, Any]


class Token:
    """Credentials of one node."""

    def __init__(self, token: str) -> None:
        self._headers = {"Authorization": f"Bearer {token}"}

    def headers(self, monotonic: float) -> Mapping[str, str]:  # noqa: ARG002 - of Credentials
        return self._headers

    def refresh(self) -> None:
        """A token of the testbed does not change."""


class Worker:
    def __init__(self, work: Work) -> None:
        self._work = work
        self._ending = threading.Event()
        self._context = ssl.create_default_context(cafile=work.ca)
        self._full: list[FullNode] = []
        self._base_mib = _rss_mib()
        self._light = self._light_nodes()

    def end(self, _number: int, _frame: object) -> None:
        self._ending.set()

    def run(self) -> None:
        threading.Thread(target=self._reports, name="reports", daemon=True).start()
        if self._work.full:
            self._start_full()
        else:
            self._start_light()
        self._ending.wait()
        self._light.stop()
        with ThreadPoolExecutor(STOPPING) as pool:
            list(pool.map(FullNode.stop, self._full))
        self._report()

    def _light_nodes(self) -> LightNodes:
        work, acting = self._work, Acting()
        given = settings_of("facts", 0, Path(work.folder), duration_s=work.lease_s, update_s=work.status_s).kubelet
        assert given is not None
        client = Client(Connection(work.server, self._context, acting), user_agent=USER_AGENT)
        facts = node_facts(given, "", semantics_of(given))
        return LightNodes(client, acting, facts, duration_s=work.lease_s, update_s=float(work.status_s))

    def _start_light(self) -> None:
        began, pause_s = time.monotonic(), self._work.ramp_s / max(1, len(self._work.nodes))
        for place, (number, name, token) in enumerate(self._work.nodes):
            self._light.add(name, token, f"{block(number)}.1", began + place * pause_s)
        self._light.start()

    def _start_full(self) -> None:
        work = self._work
        began, pause_s = time.monotonic(), work.ramp_s / max(1, len(work.nodes))
        for place, (number, name, token) in enumerate(work.nodes):
            if self._ending.wait(max(0.0, began + place * pause_s - time.monotonic())):
                return
            given = settings_of(name, number, Path(work.folder), duration_s=work.lease_s, update_s=work.status_s)
            node = FullNode(given, number, Connection(work.server, self._context, Token(token)))
            self._full.append(node)
            node.start()

    def _reports(self) -> None:
        while not self._ending.wait(REPORT_S):
            self._report()

    def _report(self) -> None:
        ready = sum(node.ready for node in list(self._full)) + self._light.ready
        counts = self._light.snapshot().as_json()
        told = Report(len(self._work.nodes), ready, self._base_mib, _rss_mib(), threading.active_count(), counts)
        path = Path(self._work.report)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(asdict(told)))
        new.replace(path)


def _rss_mib() -> float:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.fleet.worker", description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    work = Work(**json.loads(parser.parse_args().config.read_text()))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    threading.stack_size(STACK_BYTES)
    logs.set_up("warning")
    worker = Worker(work)
    signal.signal(signal.SIGTERM, worker.end)
    signal.signal(signal.SIGINT, worker.end)
    worker.run()


if __name__ == "__main__":
    main()
