"""R17: a million requests drawn by chance, of any kind, to all paths of both ports; and R18: the worst bodies that can
be made.
"""

import json
import random
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.contract import mutations
from tests.contract.go_types import (
    read_binding_result,
    read_filter_result,
    read_preemption_result,
    read_priorities,
)
from tests.scripted.status_api_process import StatusApiProcess
from tools.soak import stage
from tools.soak.rows import Progress, Trial

REQUESTS = 1_000_000
MINUTES = 60.0
EVERY_NTH_WHOLE = 10  # of the requests is made up as a whole, the others are bodies for the verbs
EVERY_NTH_STATUS_API = 25  # of the requests goes to the status API's port, which is slower
EVERY_NTH_PAGE = 2  # of these asks for a page
HANG_S = 1.0
LOOK_EVERY = 1_000
# In the last third: before that, the memory of pods that were asked about fills up.
GROWTH_LIMIT_MIB = 5.0
WORST_LIMIT_MS = 100.0


class Verb(NamedTuple):
    """seeds: bodies from which others are made. read: as Go reads an answer of status 200; /filter has no other."""

    path: bytes
    seeds: Sequence[bytes]
    read: Callable[[bytes], Any]


FILTER = Verb(b"/filter", mutations.SEEDS, read_filter_result)
VERBS = (
    *[FILTER] * 5,
    *[Verb(b"/preempt", mutations.PREEMPTIONS, read_preemption_result)] * 2,
    Verb(b"/prioritize", mutations.SEEDS, read_priorities),
    Verb(b"/bind", mutations.SEEDS, read_binding_result),
)


def hold(trial: Trial) -> None:
    with (
        stage.extender(trial.folder, nodes=8) as (extender, _, _names),
        StatusApiProcess(extender.settings, trial.folder / "status-api") as status_api,
    ):
        status_api.process.wait_ready(status_api.ready, timeout_s=20)
        ends = time.monotonic() + trial.seconds
        progress = Progress(trial.say)
        senders = {"verbs": Sender(extender.port, trial.chance), "status-api": Sender(status_api.port, trial.chance)}
        programs = {"verbs": extender, "status-api": status_api}
        held_mib = {name: [stage.rss_mib(program)] for name, program in programs.items()}  # each LOOK_EVERY requests
        sent = 0
        while sent < REQUESTS and time.monotonic() < ends:
            sent += 1
            pages = not sent % EVERY_NTH_STATUS_API
            senders["status-api" if pages else "verbs"].send(pages=pages)
            if sent % LOOK_EVERY == 0:
                for name, program in programs.items():
                    held_mib[name].append(stage.rss_mib(program))
            failures = sum(len(one.failures) for one in senders.values())
            progress(f"{sent} requests, {failures} failures, slowest {senders['verbs'].slowest_s:.2f} s")
        judge_requests(trial, sent)
        for name, sender in senders.items():
            trial.tell(f"{name}: requests", sender.sent, "")
            trial.at_most(0, f"{name}: answers 5xx, broken or not to be read by Go", len(sender.failures), "")
            trial.at_most(HANG_S, f"{name}: slowest answer", sender.slowest_s, "s")
            held = held_mib[name]
            trial.say(f"{name}: memory {held[0]:.1f} MiB at the beginning, {held[-1]:.1f} at the end")
            growth_mib = held[-1] - held[len(held) * 2 // 3]
            trial.at_most(GROWTH_LIMIT_MIB, f"{name}: growth of memory in the last third", growth_mib, "MiB")
            trial.at_most(0, f"{name}: tracebacks", stage.tracebacks(programs[name]), "")
            for request, answer in sender.failures[:5]:
                trial.say(f"{name}: {request[:300]!r} -> {answer[:200]!r}")


def judge_requests(trial: Trial, sent: int) -> None:
    """Whether there were as many as the row is about."""
    trial.played(REQUESTS, MINUTES, "requests", sent, "")


class Sender:
    """failures: what was sent and what came back."""

    def __init__(self, port: int, chance: random.Random) -> None:
        self.sent = 0
        self.slowest_s = 0.0
        self.failures: list[tuple[bytes, bytes]] = []
        self._port, self._chance = port, chance
        self._sock: socket.socket | None = None

    def send(self, *, pages: bool) -> None:
        """The next one. pages: whether the port has pages for people, too."""
        if pages and self.sent % EVERY_NTH_PAGE:
            self.send_request(mutations.question(self._chance))
        elif self.sent % EVERY_NTH_WHOLE:
            self.send_body(self._chance.choice(VERBS))
        else:
            self.send_request(mutations.request(self._chance))

    def send_body(self, verb: Verb) -> None:
        """Over a kept connection."""
        body = mutations.body(self._chance, verb.seeds)
        head = b"POST %b HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % (verb.path, len(body))
        self.sent += 1
        began = time.monotonic()
        try:
            if self._sock is None:
                self._sock = socket.create_connection(("127.0.0.1", self._port), timeout=10)
            self._sock.sendall(head + body)
            status, answer, closes = _read_answer(self._sock)
        except (OSError, ValueError) as e:
            self.failures.append((head + body, repr(e).encode()))
            self._close()
            return
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        if closes:
            self._close()
        try:
            fine = status in (200, 400)
            if status == 200 or verb is FILTER:
                verb.read(answer)
            else:
                fine = fine and list(json.loads(answer)) == ["Error"]
        except Exception as e:  # noqa: BLE001 - whatever it is, Go could not read it either
            fine, answer = False, repr(e).encode() + answer
        if not fine:
            self.failures.append((head + body, answer))

    def send_request(self, data: bytes) -> None:
        """Over a connection of its own; we say that no more will come, so that all is answered or refused at once."""
        self.sent += 1
        began = time.monotonic()
        received = b""
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=10) as sock:
                sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
                while piece := sock.recv(65536):
                    received += piece
        except TimeoutError:
            self.failures.append((data, b"no end within 10 s"))
        except OSError:
            pass  # cut: it may
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        statuses = [line.split(b" ")[1] for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.")]
        if any(status.startswith(b"5") and status not in (b"501", b"505") for status in statuses):
            self.failures.append((data, received))

    def _close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None


def _read_answer(sock: socket.socket) -> tuple[int, bytes, bool]:
    """Status, body, whether the connection ends. Raises OSError, ValueError."""
    received = b""
    while b"\r\n\r\n" not in received:
        if not (piece := sock.recv(65536)):
            raise ConnectionResetError("no whole answer")
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:"))
    while len(body) < length:
        if not (piece := sock.recv(65536)):
            raise ConnectionResetError("no whole body")
        body += piece
    return int(lines[0].split(b" ")[1]), body, b"connection: close" in lines


def worst_bodies() -> dict[str, bytes]:
    """R18."""
    pod = b'{"Pod":{"metadata":{"namespace":"d"}},"NodeNames":['
    bodies = {
        f"lists {depth:,} deep": b'{"Pod":{},"X":' + b"[" * depth + b"]" * depth + b"}"
        for depth in (10, 1_000, 100_000, 1_000_000)
    }
    labels = b",".join(b'"k%d":"v"' % number for number in range(400_000))
    return {
        **bodies,
        "a number of a million digits": b'{"Pod":{"spec":{"priority":' + b"9" * 10**6 + b'}},"NodeNames":["a"]}',
        "8 MiB and one byte": b" " * (8 * 2**20 + 1),
        "8 MiB of spaces": b" " * (8 * 2**20 - 2) + b"{}",
        "NaN": b'{"Pod":{},"NodeNames":NaN}',
        "names are a number": b'{"Pod":{},"NodeNames":5}',
        "65,536 names": pod + b",".join(b'"n%d"' % n for n in range(65_536)) + b"]}",
        "100,000 names": pod + b",".join(b'"n%d"' % n for n in range(100_000)) + b"]}",
        "900,000 names": pod + b",".join(b'"%d"' % n for n in range(900_000)) + b"]}",
        "one name 65,536 times": pod + b",".join([b'"n"'] * 65_536) + b"]}",
        "a name of 8 MB": pod + b'"' + b"n" * 8_000_000 + b'"]}',
        "400,000 labels": b'{"Pod":{"metadata":{"labels":{' + labels + b'}}},"NodeNames":["a"]}',
        "a key 100,000 times": b"{" + b'"Pod":{},' * 100_000 + b'"NodeNames":["a"]}',
    }


def hold_worst(trial: Trial) -> None:
    with stage.extender(trial.folder, nodes=8) as (extender, _, names):
        caller = stage.Caller(extender.port, names)
        caller.ask()
        idle_mib = stage.rss_mib(extender)
        answered, slowest_s = {}, 0.0
        for name, body in worst_bodies().items():
            took, spent = [], []
            for _ in range(3):
                before_s, began = stage.cpu_s(extender), time.monotonic()
                status, _, _ = extender.post(body)
                took.append(time.monotonic() - began)
                spent.append(stage.cpu_s(extender) - before_s)
                answered[name] = status
            trial.tell(name, min(took) * 1000, "ms")
            slowest_s = max(slowest_s, min(spent))
        caller.ask()
        wrong = {name: status for name, status in answered.items() if status >= 500}
        trial.at_most(0, "answers 5xx", len(wrong), "")
        trial.at_most(WORST_LIMIT_MS, "processor time of the dearest, at its best of three", slowest_s * 1000, "ms")
        trial.at_most(160, "peak above idle", stage.peak_mib(extender) - idle_mib, "MiB")
        trial.at_most(0, "calls of kube-scheduler that failed", caller.calls.failed, "")
        trial.at_most(0, "tracebacks", stage.tracebacks(extender), "")
