"""How much memory a client can make the extender take: the worst bodies that we know, seven at once."""

import itertools
import socket
import threading
from collections.abc import Callable, Iterator, Mapping

from tools.bench import arms
from tools.bench.figures import Figure
from tools.bench.filter_latency import NODES
from tools.bench.processes import Memory
from tools.bench.stub import Stub

AT_ONCE = 7
BODY_BYTES = 8 * 2**20
NODES_BODY_BYTES = 60 * 2**20
ANSWER_LIMIT_S = 30.0
DEPTH = 40  # of what stands under keys that nobody reads
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def filled(start: bytes, pieces: Iterator[bytes], end: bytes, limit_bytes: int = BODY_BYTES) -> bytes:
    """`start`, as many of the pieces with commas between as fit, `end`; together at most the limit."""
    parts, left = [], limit_bytes - len(start) - len(end)
    for piece in pieces:
        left -= len(piece) + 1
        if left < 0:
            break
        parts.append(piece)
    return start + b",".join(parts) + end


def short_texts() -> Iterator[bytes]:
    """All different, in JSON's quotes."""
    for length in itertools.count(1):
        for letters in itertools.product(LETTERS, repeat=length):
            yield f'"{"".join(letters)}"'.encode()


def bodies() -> Mapping[str, Callable[[], bytes]]:
    """Each made when it is wanted; all have the shape of a request as far as it goes. Their verb: see verb_of()."""
    in_candidate = b'{"Pod":{},"NodeNameToMetaVictims":{"h1":{"Pods":['
    in_names, in_pod = b'{"Pod":{},"NodeNames":[', b'{"NodeNames":["a"],"Pod":{"metadata":{'
    texts = short_texts
    return {
        "different names": lambda: filled(in_names, texts(), b"]}"),
        "one name again and again": lambda: filled(in_names, itertools.repeat(b'"a"'), b"]}"),
        "empty names": lambda: filled(in_names, itertools.repeat(b'""'), b"]}"),
        "one long name": lambda: filled(in_names, iter([b'"' + b"\\u00e9" * (BODY_BYTES // 6 - 20) + b'"']), b"]}"),
        "names of no text": lambda: filled(in_names, itertools.repeat(b"1"), b"]}"),
        "labels": lambda: filled(in_pod + b'"labels":{', (text + b':""' for text in texts()), b"}}}}"),
        "owners": lambda: filled(in_pod + b'"ownerReferences":[', itertools.repeat(b"{}"), b"]}}}"),
        "unknown keys": lambda: filled(b'{"Pod":{},"NodeNames":["a"],', (text + b":[]" for text in texts()), b"}"),
        "keys in another case": lambda: filled(b'{"pod":{},"nodeNames":[', texts(), b"]}"),
        "a deep one": lambda: b"[" * BODY_BYTES,
        "victims": lambda: filled(in_candidate, (b'{"UID":%b}' % text for text in texts()), b"]}}}"),
        "lists beside the victims": lambda: filled(
            in_candidate + b'],"x":[', itertools.repeat(b"[" * DEPTH + b"]" * DEPTH), b"]}}}"
        ),
        "empty nodes": lambda: filled(b'{"Pod":{},"Nodes":{"items":[', itertools.repeat(b"{}"), b"]}}"),
        "whole nodes": lambda: filled(
            b'{"Pod":{},"Nodes":{"items":[',
            (b'{"metadata":{"name":"n%d","annotations":{"a":"%b"}}}' % (i, b"x" * 12_000) for i in itertools.count()),
            b"]}}",
            NODES_BODY_BYTES,
        ),
    }


def verb_of(body: bytes) -> str:
    return "preempt" if b'"NodeNameToMetaVictims"' in body[:64] else "filter"


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """A fresh extender for each body, so that none inherits what another has left; about a minute."""
    stub = Stub(arms.go_binary(progress), nodes=NODES)
    wanted = dict(itertools.islice(bodies().items(), 2)) if quick else bodies()
    above_mib = {}
    with stub.child:
        for name, make in wanted.items():
            progress(f"peak memory: {name}")
            body = make()
            arm = arms.start_readygate(stub.api)
            with arm.child:
                arms.wait_synced(arm)
                above_mib[name] = _peak_of(arm, body)
    return figures(above_mib)


def _peak_of(arm: arms.Arm, body: bytes) -> float:
    send(arm, b'{"Pod":{},"NodeNames":["a"]}')
    idle = arm.child.memory()
    arm.child.begin_peak()
    clients = [threading.Thread(target=send, args=(arm, body)) for _ in range(AT_ONCE)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    arm.child.check()
    return above_idle_mib(idle, arm.child.memory())


def send(arm: arms.Arm, body: bytes) -> int:
    """Posts the body and reads the answer, as far as there is one: its status, or 0."""
    host, _, port = arm.address.partition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=ANSWER_LIMIT_S) as client:
            lines = [
                f"POST /{verb_of(body)} HTTP/1.1",
                f"Host: {arm.address}",
                "Connection: close",
                f"Content-Length: {len(body)}",
            ]
            client.sendall("\r\n".join([*lines, "", ""]).encode() + body)
            answer = client.recv(65536)
            while client.recv(65536):
                pass
    except OSError:
        return 0  # cut: its right
    words = answer.split(b" ", 2)
    return int(words[1]) if len(words) > 2 else 0


def above_idle_mib(idle: list[Memory], after: list[Memory]) -> float:
    """What all processes took at the most beyond what they held before."""
    return sum(process.peak_mib for process in after) - sum(process.rss_mib for process in idle)


def figures(above_mib: Mapping[str, float]) -> list[Figure]:
    """One for the names, and one for the worst of all."""
    worst = max(above_mib, key=lambda name: above_mib[name])
    all_of_them = ", ".join(f"{name} {value:.0f}" for name, value in above_mib.items())
    names = above_mib["different names"]
    return [
        Figure("peak_8mib_names_mib", names, "MiB", f"above idle, {AT_ONCE} bodies of 8 MiB of names at once"),
        Figure("peak_worst_body_mib", above_mib[worst], "MiB", f"{worst}; {AT_ONCE} at once: {all_of_them}"),
    ]
