"""Clients that attack an extender, or the process that shows its status, as a process of their own.

`python -m tools.chaos.attackers NAME PORT` attacks that port of loopback until its standard input ends, and for
LIMIT_S at most. It prints a line once a second: how many connections it has made.
"""

import contextlib
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.kit.child import Child
from tools.kit.programs import python_environ

LIMIT_S = 1200.0
PATIENCE_S = 5.0
NICE = 5  # a client of another host takes no processor from the control plane on this one
RESET = struct.pack("ii", 1, 0)  # SO_LINGER 0: close() sends a reset
HEAD = b"POST /filter HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
NAMES = b'{"Pod":{"metadata":{"namespace":"d"}},"Nodes":null,"NodeNames":[%b]}' % b",".join(
    b'"n%d"' % number for number in range(64_000)
)
NAMED = HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(NAMES), NAMES)
PART_BYTES = 950_000
PARTS = HEAD + b"Content-Length: 1000000\r\n\r\n" + b" " * PART_BYTES
EXPECTS = HEAD + b"Expect: 100-continue\r\nContent-Length: 1000000\r\n\r\n"
ONE_BYTE = HEAD + b"Content-Length: 2000000\r\n\r\n "
PAGES = b"GET /api/v1/nodes HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Clients:
    """What the clients of one attack share."""

    def __init__(self, port: int, stop: threading.Event) -> None:
        self.connections = 0
        self._port = port
        self._stop = stop
        self._threads: list[threading.Thread] = []

    def connect(self, *, receive_bytes: int = 0) -> socket.socket:
        """Raises OSError."""
        sock = socket.socket()
        sock.settimeout(PATIENCE_S)
        if receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        try:
            sock.connect(("127.0.0.1", self._port))
        except OSError:
            sock.close()
            raise
        self.connections += 1
        return sock

    def start(self, count: int, once: Callable[[], None], *, pause_s: float = 0.0) -> None:
        """So many clients, each in a thread, do it again and again."""

        def repeat() -> None:
            while not self._stop.wait(pause_s):
                try:
                    once()
                except OSError:
                    self._stop.wait(0.01)

        self._threads += [threading.Thread(target=repeat, daemon=True) for _ in range(count)]
        for thread in self._threads[-count:]:
            thread.start()

    def wait(self, seconds: float) -> None:
        self._stop.wait(seconds)

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()


def expects_and_resets(clients: Clients) -> None:
    """Five connections send a head with Expect and reset; 36 connections send 34 MB of their bodies and stop."""

    def once() -> None:
        with contextlib.ExitStack() as stack:
            for _ in range(5):
                sock = clients.connect()
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                sock.sendall(EXPECTS)
                sock.close()
            for _ in range(36):
                if clients.stopped:
                    return
                with contextlib.suppress(OSError):
                    sock = stack.enter_context(clients.connect())
                    sock.settimeout(1.0)
                    sock.sendall(PARTS)
            clients.wait(0.5)

    clients.start(1, once)


def floods_with_names(clients: Clients) -> None:
    """Eighty connections send requests that name 64,000 nodes and read no answer, half of them with a reset."""

    def once(*, reset: bool) -> None:
        with clients.connect() as sock:
            if reset:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            sock.sendall(NAMED)
            clients.wait(0.1)

    clients.start(40, lambda: once(reset=True))
    clients.start(40, lambda: once(reset=False))


def _stall(clients: Clients, count: int) -> None:
    def once() -> None:
        with clients.connect() as sock:
            sock.settimeout(None)
            sock.sendall(ONE_BYTE)
            while sock.recv(65536):
                continue

    clients.start(count, once)


def four_stall_in_a_large_body(clients: Clients) -> None:
    """Each sends one byte of a body of 2 MB, and begins again when it is cut."""
    _stall(clients, 4)


def thirty_two_stall_in_a_large_body(clients: Clients) -> None:
    _stall(clients, 32)


def names_unknown_nodes(clients: Clients) -> None:
    """Sixty clients name 64,000 unknown nodes over kept connections, each again when it is answered."""

    def once() -> None:
        with clients.connect() as sock:
            while not clients.stopped:
                sock.sendall(NAMED)
                while not (piece := sock.recv(2**20)).endswith(b"}"):
                    if not piece:
                        return

    clients.start(60, once)


def attacks_the_status_port(clients: Clients) -> None:
    """Thirty clients send bodies of 8 MB, thirty read 256 bytes of their pages a second, ten ask without a pause."""

    def sends() -> None:
        with clients.connect() as sock:
            sock.sendall(HEAD + b"Content-Length: 8000000\r\n\r\n")
            for _ in range(80):
                sock.sendall(b" " * 100_000)
            sock.recv(65536)

    def reads_slowly() -> None:
        with clients.connect(receive_bytes=4096) as sock:
            sock.sendall(PAGES * 20)
            while not clients.stopped and sock.recv(256):
                clients.wait(1.0)

    def asks() -> None:
        with clients.connect() as sock:
            while not clients.stopped:
                sock.sendall(PAGES)
                if not sock.recv(2**20):
                    return

    clients.start(30, sends)
    clients.start(30, reads_slowly)
    clients.start(10, asks)


Attack = Callable[[Clients], None]
ATTACKS: tuple[Attack, ...] = (
    expects_and_resets,
    floods_with_names,
    four_stall_in_a_large_body,
    thirty_two_stall_in_a_large_body,
    names_unknown_nodes,
    attacks_the_status_port,
)


@contextlib.contextmanager
def attacked(attack: Attack, port: int, folder: Path) -> Iterator[Child]:
    """The attack goes on until the end of the context."""
    argv = [sys.executable, "-m", __spec__.name, attack.__name__, str(port)]
    log = folder / f"{attack.__name__}.log"
    log.unlink(missing_ok=True)
    child = Child(attack.__name__, argv, log=log, environ=python_environ(), lifeline=True)
    with child:
        child.start()
        child.wait_ready(lambda: "connections" in child.text(), timeout_s=30.0)
        yield child
        child.check()


def connections_of(child: Child) -> int:
    """How many connections the attack has made."""
    return int(child.lines()[-1].split()[0])


def main() -> None:
    os.nice(NICE)
    attack = next(one for one in ATTACKS if one.__name__ == sys.argv[1])
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
    clients = Clients(int(sys.argv[2]), stop)
    attack(clients)
    ends = time.monotonic() + LIMIT_S
    while not stop.wait(0.5) and time.monotonic() < ends:
        print(f"{clients.connections} connections", flush=True)


if __name__ == "__main__":
    main()
