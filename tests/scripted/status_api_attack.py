"""What clients of the status API can do to it at once, and an extender of 5,000 nodes that remembers all it may."""

import http.client
import re
import socket
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import cycle, repeat
from pathlib import Path
from typing import NamedTuple

import msgspec

from extender.feed.server import FeedServer
from extender.policy.decision import Decision
from extender.why.entries import Cause, Event, Named, PodRecord, Reset
from extender.why.history import EVENTS_MAX, PIECE
from extender.why.pods import NAMES_MAX, PODS_MAX
from tests.extender.feed.published import Published
from tests.scripted.extender_process import memory_mib
from tests.scripted.status_api_process import StatusApiProcess
from tools.bench.peak_memory import filled, short_texts
from tools.kit.pid import children
from tools.kit.waiting import wait_until

NODES = [f"ip-10-0-{number // 250}-{number % 250}.eu-west-1.compute.internal" for number in range(5000)]
REASON = "readygate: node(s) reported unhealthy"
EVIDENCE = "dns: 10.96.0.10 timed out after 1 s; " + "x" * 219  # 256 characters: no more of it is shown
BODY_BYTES = 2 * 2**20
CLIENTS = 30
PROBE_EVERY_S = 0.2
# The kernel's buffers of 64 connections, of 64 KiB to be read and 128 to be sent, and what else it holds.
KERNEL_MIB = 16
Act = Callable[[], object]


def full() -> Published:
    """Each node has the longest evidence, each tenth is closed. Pods, names and events are as many as there may be."""
    published = Published()
    published.decide({name: _decision(number, name) for number, name in enumerate(NODES)})
    published.beating = dict.fromkeys(NODES, time.monotonic())
    of_each = NAMES_MAX // PODS_MAX
    with published.journal.writing():
        put = published.journal.put
        put(Reset(1.0))
        for first in range(0, len(NODES), PIECE):
            put(Named(first, NODES[first : first + PIECE]))
        put(Cause(0, "health", REASON, False))
        for number in range(PODS_MAX):
            nodes = array("I", [(number * 7 + one) % len(NODES) for one in range(of_each)]).tobytes()
            refused = {"refused_times": 1, "at": 2.0, "refused": of_each, "nodes": nodes, "codes": bytes(of_each)}
            name, uid = f"deployment-7c9f8d6b5-{number:07}", f"0f0f0f0f-0000-0000-0000-{number:012}"
            put(PodRecord("a-namespace-of-a-tenant", name, uid, 1.0, 2.0, 1, **refused))
        for number in range(EVENTS_MAX):
            put(Event(number + 1, 2.0, "closed", "health", NODES[number % len(NODES)], REASON, EVIDENCE[:150]))
    return published


def change(published: Published, number: int) -> None:
    """Another node is open or closed."""
    name = NODES[number % len(NODES)]
    decisions = published.board.snapshot.gates["health"].decisions
    published.decide({**decisions, name: _decision(number // len(NODES) + number, name)})


def _decision(number: int, name: str) -> Decision:
    reason = "" if number % 10 else REASON
    return Decision(reason, f"readygate-system/readygate-agent-{name[3:8]}", EVIDENCE, 5.0 + number, verdict=reason)


def bodies(size: int) -> list[tuple[str, bytes]]:
    """Verb and body: those that take the most memory for their size, and ordinary ones."""
    in_names, in_pod = b'{"Pod":{"metadata":{"name":"a"}},"NodeNames":[', b'{"NodeNames":["a"],"Pod":{"metadata":{'
    known = [b'"%b"' % name.encode() for name in NODES]
    nodes = [b'{"metadata":{"name":%b,"labels":{"a":"b","c":"d"}}}' % name for name in known]
    victims = b'{"Pod":{},"NodeNameToMetaVictims":{"h1":{"Pods":['
    return [
        ("filter", filled(in_names, cycle(known), b"]}", size)),
        ("filter", filled(in_names, short_texts(), b"]}", size)),
        ("filter", filled(in_pod + b'"labels":{', (b'%b:""' % text for text in short_texts()), b"}}}", size)),
        ("filter", filled(in_pod + b'"ownerReferences":[', repeat(b"{}"), b"]}}", size)),
        ("filter", filled(b'{"Pod":{},"Nodes":{"items":[', cycle(nodes), b"]}}", size)),
        ("preempt", filled(victims, (b'{"UID":%b}' % text for text in short_texts()), b"]}}}", size)),
        ("prioritize", filled(in_names, cycle(known), b"]}", size)),
    ]


def ask(port: int, method: str, path: str, body: bytes | None = None) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def read_slowly(port: int) -> None:
    """The biggest page, again and again, a thousand bytes at a time."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(10)
        sock.connect(("127.0.0.1", port))
        sock.sendall(b"GET /api/v1/nodes HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5)
        for _ in range(20):
            time.sleep(0.2)
            sock.recv(1000)


def send_slowly(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        sock.sendall(b"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % BODY_BYTES)
        for _ in range(100):
            time.sleep(0.1)
            sock.send(b" " * 10_000)


def send_chunks(port: int) -> None:
    """A body without an announced length, of 13 MB."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        sock.sendall(b"POST /filter HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(200):
            sock.sendall(b"10000\r\n" + b" " * 2**16 + b"\r\n")


def hold_silently(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10):
        time.sleep(0.2)


@contextmanager
def worst(port: int) -> Iterator[Counter[tuple[str, object]]]:
    """Thirty clients with bodies, and eight of each other kind. Gives how often each kind got which answer."""
    over, answers = threading.Event(), Counter[tuple[str, object]]()
    large = [*bodies(BODY_BYTES), *bodies(BODY_BYTES // 2)]

    def post(number: int) -> Act:
        verb, body = large[number % len(large)]
        return lambda: ask(port, "POST", f"/{verb}", body)

    posts = [("body", post(number)) for number in range(CLIENTS)]
    others: list[tuple[str, Act]] = [
        ("all nodes", lambda: ask(port, "GET", "/api/v1/nodes")),
        ("nodes", lambda: ask(port, "GET", "/api/v1/nodes?limit=1000")),
        ("history", lambda: ask(port, "GET", "/api/v1/history?limit=1000")),
        ("metrics", lambda: ask(port, "GET", "/metrics")),
        ("slow reader", lambda: read_slowly(port)),
        ("slow sender", lambda: send_slowly(port)),
        ("chunks", lambda: send_chunks(port)),
        ("silent", lambda: hold_silently(port)),
    ]

    def pour(kind: str, act: Act) -> None:
        while not over.is_set():
            answer: object = ""
            with suppress(OSError, http.client.HTTPException):
                answer = act()
            answers[kind, answer] += 1
            time.sleep(0.01)  # what the clients burn themselves is taken from two processors that all share

    threads = [threading.Thread(target=pour, args=one) for one in [*posts, *others * 8]]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        over.set()
        for thread in threads:
            thread.join()


class Seen(NamedTuple):
    """idle_mib, peak_mib: memory of master and worker that the kernel cannot take back. probes: seconds and status."""

    idle_mib: float
    peak_mib: float
    probes: list[tuple[float, int]]
    answers: dict[tuple[str, object], int]


def attack(folder: Path, seconds: float) -> Seen:
    """The real process, attacked for so long, and then fed by another extender."""
    published = full()
    path = folder / "feed" / "socket"
    publisher = FeedServer(path, published)
    publisher.start()
    # With as much of the processor as it can get: more answers are under way at once than with its share.
    with StatusApiProcess({"feed": {"socket": str(path)}}, folder) as status_api:
        try:
            wait_until(
                lambda: _newest(status_api) == "closed" and _has_the_last_pod(status_api),
                lambda: status_api.log,
                timeout_s=60,
            )
            (worker,) = children(status_api.process.pid)
            idle_mib = memory_mib(worker, "RssAnon") + _private_mib(status_api.process.pid)
            probes = []
            with worst(status_api.port) as answers:
                ends, number = time.monotonic() + seconds, 0
                while time.monotonic() < ends:
                    number += 1
                    change(published, number)
                    began = time.monotonic()
                    status, _ = status_api.get("/livez")
                    probes.append((time.monotonic() - began, status))
                    time.sleep(PROBE_EVERY_S)
            publisher.stop()  # another worker takes over: all comes again, beside what is there
            published.journal.write(Event(EVENTS_MAX + 1, 3.0, "opened", "health", NODES[0]))
            publisher = FeedServer(path, published)
            publisher.start()
            wait_until(lambda: _newest(status_api) == "opened", lambda: status_api.log, timeout_s=60)
            assert children(status_api.process.pid) == [worker], "no other worker has taken its place"
            assert "Traceback" not in status_api.log
            private_mib = memory_mib(worker, "VmHWM") - memory_mib(worker, "RssFile")
            peak_mib = private_mib + _private_mib(status_api.process.pid)
            return Seen(idle_mib, peak_mib, probes, dict(answers))
        finally:
            publisher.stop()


def _newest(status_api: StatusApiProcess) -> str:
    """The kind of the newest change that is remembered."""
    status, history = status_api.get("/api/v1/history?limit=1")
    events = msgspec.json.decode(history)["events"] if status == 200 else []
    return str(events[0]["kind"]) if events else ""


def _has_the_last_pod(status_api: StatusApiProcess) -> bool:
    status, pod = status_api.get(f"/api/v1/pods/a-namespace-of-a-tenant/deployment-7c9f8d6b5-{PODS_MAX - 1:07}")
    return status == 200 and bool(msgspec.json.decode(pod).get("uid"))


def _private_mib(pid: int) -> float:
    found = re.search(r"Private_Dirty:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text())
    assert found is not None
    return int(found[1]) / 1024
