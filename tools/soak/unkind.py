"""What clients can do to the port of the verbs beside being slow: each kind for a few seconds, and beside it one who
asks as kube-scheduler does, over a kept connection and over new ones.
"""

import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tools.kit.programs import python_environ
from tools.soak import stage
from tools.soak.rows import Trial
from tools.soak.slow_clients import HEAD

PROCESSES = 2
P99_LIMIT_MS = 250.0  # beside the dearest answer there is, on a machine that has two cores for all of us
IDLE_CPU_LIMIT = 0.25  # of a core, while connections are only held
# The body below 1 MiB whose answer costs most: as many values as are taken.
DEAR_BODY = (
    b'{"Pod":{"metadata":{"namespace":"d","ownerReferences":['
    + b",".join([b"{}"] * 190_000)
    + b']}},"NodeNames":["n1"]}'
)
DEAR = HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(DEAR_BODY), DEAR_BODY)
# Names that are no node's come back, each with a reason: an answer that no socket's buffers hold.
ECHOED_BODY = (
    b'{"Pod":{"metadata":{"namespace":"d"}},"NodeNames":['
    + b",".join(b'"%0*d"' % (900, number) for number in range(1_000))
    + b"]}"
)
ECHOED = HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(ECHOED_BODY), ECHOED_BODY)
CHEAP_BODY = b'{"Pod":{},"NodeNames":["node-0001"]}'
CHEAP = HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(CHEAP_BODY), CHEAP_BODY)
RESET = struct.pack("ii", 1, 0)

Attack = Callable[[int, threading.Event], None]


def _connect(port: int, *, receive_bytes: int = 0) -> socket.socket:
    sock = socket.socket()
    sock.settimeout(5)
    if receive_bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    sock.connect(("127.0.0.1", port))
    return sock


def _again(port: int, stop: threading.Event, once: Callable[[socket.socket], None]) -> None:
    while not stop.is_set():
        try:
            with _connect(port) as sock:
                once(sock)
        except OSError:
            stop.wait(0.001)


def connects_and_goes(port: int, stop: threading.Event) -> None:
    _again(port, stop, lambda _: None)


def resets_after_asking(port: int, stop: threading.Event) -> None:
    def once(sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        sock.sendall(CHEAP)

    _again(port, stop, once)


def resets_in_mid_body(port: int, stop: threading.Event) -> None:
    def once(sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        sock.sendall(DEAR[:300_000])

    _again(port, stop, once)


def asks_dear_things(port: int, stop: threading.Event) -> None:
    def once(sock: socket.socket) -> None:
        while not stop.is_set():
            sock.sendall(DEAR)
            while not (piece := sock.recv(2**20)).endswith(b"}"):  # the end of an answer, or of a piece by chance
                if not piece:
                    return

    _again(port, stop, once)


def asks_for_large_answers_and_never_reads(port: int, stop: threading.Event) -> None:
    _hold(port, stop, 40, ECHOED, receive_bytes=4096)


def pipelines_without_reading(port: int, stop: threading.Event) -> None:
    _hold(port, stop, 40, CHEAP * 30, receive_bytes=4096)


def pipelines_dear_things(port: int, stop: threading.Event) -> None:
    _again(port, stop, lambda sock: sock.sendall(DEAR * 20))


def holds_connections_that_had_a_verdict(port: int, stop: threading.Event) -> None:
    _hold(port, stop, 300, CHEAP)


def announces_large_bodies(port: int, stop: threading.Event) -> None:
    _hold(port, stop, 100, HEAD + b"Content-Length: 8000000\r\n\r\n" + b" " * 4_000_000)


def fills_what_may_be_held(port: int, stop: threading.Event) -> None:
    _hold(port, stop, 60, HEAD + b"Content-Length: 1000000\r\n\r\n" + b" " * 999_000)


def expects_and_says_nothing(port: int, stop: threading.Event) -> None:
    _hold(port, stop, 60, HEAD + b"Expect: 100-continue\r\nContent-Length: 1000000\r\n\r\n")


def sends_a_chunk_a_byte(port: int, stop: threading.Event) -> None:
    _again(
        port, stop, lambda sock: sock.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 200_000)
    )


def half_closes_and_waits(port: int, stop: threading.Event) -> None:
    socks = []
    for data in (
        b"",
        b"P",
        HEAD,
        HEAD + b"Content-Length: 100\r\n\r\n",
        CHEAP,
        HEAD + b"Content-Length: 5000000\r\n\r\n",
    ):
        for _ in range(8):
            try:
                sock = _connect(port)
                sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
                socks.append(sock)
            except OSError:
                pass
    stop.wait()
    for sock in socks:
        sock.close()


def asks_for_health_without_end(port: int, stop: threading.Event) -> None:
    question = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

    def once(sock: socket.socket) -> None:
        while not stop.is_set():
            sock.sendall(question * 20)
            if not sock.recv(65536):
                return

    _again(port, stop, once)


def sends_headers_without_end(port: int, stop: threading.Event) -> None:
    _again(port, stop, lambda sock: sock.sendall(HEAD + b"X: y\r\n" * 500_000))


def _hold(port: int, stop: threading.Event, count: int, data: bytes, *, receive_bytes: int = 0) -> None:
    socks: list[socket.socket | None] = [None] * count
    while not stop.is_set():
        for number, sock in enumerate(socks):
            if stop.is_set():
                break
            if sock is not None and not stage.is_closed(sock):
                continue
            if sock is not None:
                sock.close()
            try:
                socks[number] = new = _connect(port, receive_bytes=receive_bytes)
                new.setblocking(False)
                new.send(data)
            except OSError:
                pass
        stop.wait(0.2)
    for sock in socks:
        if sock is not None:
            sock.close()


# How many processes do it at once.
ATTACKS: dict[Attack, int] = {
    connects_and_goes: PROCESSES,
    resets_after_asking: PROCESSES,
    resets_in_mid_body: PROCESSES,
    asks_dear_things: PROCESSES,
    asks_for_large_answers_and_never_reads: 1,
    pipelines_without_reading: 1,
    pipelines_dear_things: PROCESSES,
    holds_connections_that_had_a_verdict: 1,
    announces_large_bodies: 1,
    fills_what_may_be_held: 1,
    expects_and_says_nothing: 1,
    sends_a_chunk_a_byte: 2,
    half_closes_and_waits: 1,
    asks_for_health_without_end: 2,
    sends_headers_without_end: 2,
}


def hold(trial: Trial) -> None:
    seconds = trial.seconds / len(ATTACKS)
    with stage.extender(trial.folder) as (extender, _, names):
        kept = stage.Caller(extender.port, names)
        kept.ask()
        idle_mib = stage.rss_mib(extender)
        for attack, processes in ATTACKS.items():
            kept.calls, spent_s = stage.Calls(), stage.cpu_s(extender)
            fresh = _under(attack, processes, extender.port, names, kept, seconds)
            name = attack.__name__.replace("_", " ")
            cores = (stage.cpu_s(extender) - spent_s) / seconds
            failed, p99_ms = kept.calls.failed + fresh.failed, max(kept.calls.ms(0.99), fresh.ms(0.99))
            trial.say(
                f"{name}: {len(kept.calls.seconds)} calls, {failed} failed, p99 {p99_ms:.0f} ms, {cores:.2f} cores"
            )
            if failed:
                trial.say(f"  kept {kept.calls.failures}, new {fresh.failures}")
            trial.at_most(0, f"{name}: failed", failed, "calls")
            trial.at_most(P99_LIMIT_MS, f"{name}: p99", p99_ms, "ms")
        time.sleep(2.0)
        spent_s = stage.cpu_s(extender)
        time.sleep(2.0)
        trial.at_most(IDLE_CPU_LIMIT, "cores used when all are gone", (stage.cpu_s(extender) - spent_s) / 2, "")
        trial.at_most(160, "peak above idle", stage.peak_mib(extender) - idle_mib, "MiB")
        trial.at_most(0, "tracebacks", stage.tracebacks(extender), "")
        kept.close()


def _under(
    attack: Attack, processes: int, port: int, names: list[str], kept: stage.Caller, seconds: float
) -> stage.Calls:
    """The calls over new connections; those over the kept one are in `kept`."""
    fresh = stage.Calls()
    with attacked(attack, processes, port):
        time.sleep(min(0.5, seconds / 4))
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            kept.ask()
            new = stage.Caller(port, names)
            new.ask()
            new.close()
            fresh.seconds += new.calls.seconds
            for word in new.calls.failures:
                fresh.fail(word)
            time.sleep(0.02)
    return fresh


@contextmanager
def attacked(attack: Attack, processes: int, port: int) -> Iterator[None]:
    """Each in a process of its own, or it would slow the one who asks by their common interpreter."""
    argv = [sys.executable, "-m", __spec__.name, attack.__name__, str(port)]
    attackers = [
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **python_environ()})
        for _ in range(processes)
    ]
    try:
        for one in attackers:
            assert one.stdout is not None
            one.stdout.readline()
        yield
    finally:
        for one in attackers:
            one.kill()
            one.communicate()


def main() -> None:
    """`python -m tools.soak.unkind NAME PORT`: until the standard input ends."""
    attack = next(one for one in ATTACKS if one.__name__ == sys.argv[1])
    stop = threading.Event()
    threading.Thread(target=attack, args=(int(sys.argv[2]), stop), daemon=True).start()
    print("begun", flush=True)
    sys.stdin.read()
    stop.set()


if __name__ == "__main__":
    main()
