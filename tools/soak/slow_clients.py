"""R19: 200 clients that dawdle in every way there is, and beside them one who asks as kube-scheduler does."""

import selectors
import socket
import threading
import time
from typing import Self

from extender.serve.limits import CONNECTIONS_MAX
from tools.soak import stage
from tools.soak.rows import Progress, Trial

FORMS = PLAIN, SHIPPED = ("plain", "shipped")
BESIDE = 3  # descriptors that come and go beside the connections: one that is just taken, a list that is read
CLIENTS = 200
ASK_EVERY_S = 0.05
DRIP_EVERY_S = 1.0
P99_LIMIT_MS = 50.0
HEAD = b"POST /filter HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
_MANY = b'{"Pod":{"metadata":{"namespace":"kube-system"}},"NodeNames":[' + b",".join(
    b'"%05d%s"' % (number, b"x" * 80) for number in range(20_000)
)
BIG_QUESTION = HEAD + b"Content-Length: %d\r\n\r\n" % (len(_MANY) + 2) + _MANY + b"]}"
# What each kind sends at once, and then a byte a second of; it never reads.
KINDS: dict[str, tuple[bytes, bytes]] = {
    "says nothing": (b"", b""),
    "half a header": (HEAD, b"X"),
    "half a body": (HEAD + b"Content-Length: 5000\r\n\r\n", b" "),
    "half a large body": (HEAD + b"Content-Length: 8000000\r\n\r\n" + b" " * 1000, b" "),
    "half a TLS handshake": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x00"),
    "half a chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nfff\r\n", b" "),
    "never reads its answer": (BIG_QUESTION, b""),
    "answered once, then half a header": (b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"G"),
}


class SlowClients:
    """Keeps `count` of them open, each kind alike; whoever is cut comes again at once."""

    def __init__(self, port: int, count: int = CLIENTS) -> None:
        self.cut = 0
        self.most_open = 0
        self._port, self._count = port, count
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slow-clients", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        kinds = list(KINDS.values())
        slots: list[tuple[socket.socket, bytes, bytes] | None] = [None] * self._count
        while not self._stop.is_set():
            turn_ends = time.monotonic() + DRIP_EVERY_S
            for number, slot in enumerate(slots):
                if slot is None or not self._drip(slot):
                    slots[number] = self._open(*kinds[number % len(kinds)])
                if self._stop.is_set():
                    break
            self.most_open = max(self.most_open, sum(slot is not None for slot in slots))
            self._stop.wait(max(0.0, turn_ends - time.monotonic()))
        for slot in slots:
            if slot is not None:
                slot[0].close()

    def _open(self, first: bytes, drop: bytes) -> tuple[socket.socket, bytes, bytes] | None:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(0.5)
        try:
            sock.connect(("127.0.0.1", self._port))
            sock.setblocking(False)
            sent = sock.send(first) if first else 0
        except OSError:
            sock.close()
            return None
        return sock, first[sent:], drop

    def _drip(self, slot: tuple[socket.socket, bytes, bytes]) -> bool:
        """False when the other side has cut it."""
        sock, rest, drop = slot
        try:
            if rest:
                sock.send(rest)
            elif drop:
                sock.send(drop)
            elif _closed(sock):
                raise ConnectionResetError
        except BlockingIOError:
            return True
        except OSError:
            self.cut += 1
            sock.close()
            return False
        return True


def _closed(sock: socket.socket) -> bool:
    """Looked at without reading what has come."""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        if not selector.select(0):
            return False
    return sock.recv(1, socket.MSG_PEEK) == b""


def hold(trial: Trial) -> None:
    """Half of the time with one gate and nothing else that could cost time, half of it in the form that is shipped."""
    for form in FORMS:
        _hold(trial, form)


def _hold(trial: Trial, form: str) -> None:
    folder = trial.folder / form
    folder.mkdir()
    with stage.extender(folder, shipped=form == SHIPPED) as (extender, _, names):
        caller = stage.Caller(extender.port, names)
        for _ in range(20):
            caller.ask()
        caller.calls = stage.Calls()
        idle_mib = stage.rss_mib(extender)
        before, most = stage.descriptors(extender) - 1, 0  # but for the caller's
        progress = Progress(trial.say)
        seconds = trial.seconds / len(FORMS)
        with SlowClients(extender.port) as slow:
            time.sleep(min(5.0, seconds / 4))  # they are all there
            ends = time.monotonic() + seconds
            while time.monotonic() < ends:
                caller.ask()
                most = max(most, stage.descriptors(extender))
                said = f"{len(caller.calls.seconds)} calls, {caller.calls.failed} failed, {slow.cut} clients cut"
                progress(f"{form}: {said}, {most - before} connections")
                time.sleep(ASK_EVERY_S)
        caller.close()
        trial.tell(f"{form}: calls", len(caller.calls.seconds), "calls")
        trial.at_most(0, f"{form}: stalled_200_failed", caller.calls.failed, "calls")
        trial.at_most(P99_LIMIT_MS, f"{form}: stalled_200_filter_p99_ms", caller.calls.ms(0.99), "ms")
        trial.tell(f"{form}: stalled_200_filter_p50_ms", caller.calls.ms(0.5), "ms")
        trial.tell(f"{form}: slow clients that were cut", slow.cut, "")
        trial.at_least(CLIENTS / 2, f"{form}: slow clients at once", slow.most_open, "")
        judge_places(trial, form, most - before)
        trial.at_most(160, f"{form}: peak above idle", stage.peak_mib(extender) - idle_mib, "MiB")
        trial.at_most(0, f"{form}: tracebacks", stage.tracebacks(extender), "")
        if caller.calls.failures:
            trial.say(f"{form}: failures: {caller.calls.failures}")


def judge_places(trial: Trial, form: str, held: int) -> None:
    """Whether they took all places there are, and no more than that."""
    trial.at_most(CONNECTIONS_MAX + BESIDE, f"{form}: connections at once", held, "")
    trial.at_least(0.9 * CONNECTIONS_MAX, f"{form}: places that were taken", held, "")
