"""What a body can make the verbs take: memory by its bytes, whatever is in it."""

import itertools
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from extender.verbs.filter import answer_filter
from extender.verbs.preempt import answer_preempt
from tests.extender.verbs.test_filter import World

BODY_BYTES = 2**20
PEAK_BYTES_A_BYTE = 20  # 160 MiB above idle of 8 MiB
DEPTH = 40
ANSWERS = {"filter": answer_filter, "preempt": answer_preempt}


def filled(start: bytes, piece: bytes | Iterator[bytes], end: bytes) -> bytes:
    pieces = itertools.repeat(piece) if isinstance(piece, bytes) else piece
    parts, size = [], len(start) + len(end)
    for one in pieces:
        size += len(one) + 1
        if size > BODY_BYTES:
            break
        parts.append(one)
    return start + b",".join(parts) + end


def named(value: bytes) -> Iterator[bytes]:
    """Members of an object, no two alike."""
    return (b'"%x":%b' % (number, value) for number in itertools.count())


LISTS, OBJECTS = b"[" * DEPTH + b"]" * DEPTH, b'{"":' * DEPTH + b"0" + b"}" * DEPTH
META = b'{"Pod":{},"NodeNameToMetaVictims":{'
BODIES = {
    "lists in lists under a key of a candidate": filled(META + b'"h1":{"Pods":[],"x":[', LISTS, b"]}}}"),
    "objects in objects there": filled(META + b'"h1":{"Pods":[],"x":[', OBJECTS, b"]}}}"),
    "lists beside a victim": filled(META + b'"h1":{"Pods":[{"UID":"a","x":[', LISTS, b"]}]}}}"),
    "candidates": filled(META, named(b"{}"), b"}}"),
    "candidates of a later kind": filled(META, named(b'{"x":[]}'), b"}}"),
    "victims": filled(META + b'"h1":{"Pods":[', b"{}", b"]}}}"),
    "victims of a later kind": filled(META + b'"h1":{"Pods":[', b'{"x":0}', b"]}}}"),
    "victims as whole pods": filled(
        b'{"Pod":{},"NodeNameToVictims":{"h1":{"Pods":[', b'{"metadata":{"uid":""}}', b"]}}}"
    ),
    "keys in another case": filled(b'{"pod":{},"nodenametometavictims":{"h1":{"Pods":[],"x":[', LISTS, b"]}}}"),
    "lists beside the names": filled(b'{"Pod":{},"NodeNames":["a"],"x":[', LISTS, b"]}"),
    "lists in the Pod": filled(b'{"NodeNames":["a"],"NodeNameToMetaVictims":{},"Pod":{"x":[', LISTS, b"]}}"),
    "names": filled(b'{"Pod":{},"NodeNames":[', (b'"%x"' % number for number in itertools.count()), b"]}"),
    "labels": filled(
        b'{"NodeNames":["a"],"NodeNameToMetaVictims":{},"Pod":{"metadata":{"labels":{', named(b'""'), b"}}}}"
    ),
    "only brackets": b"[" * BODY_BYTES,
}


@pytest.mark.parametrize("verb", ANSWERS)
@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in BODIES.items()])
def test_no_body_takes_more_than_twenty_bytes_a_byte(verb: str, body: bytes) -> None:
    services, answer = World().services, ANSWERS[verb]
    assert taken(lambda: answer(services, body)) <= PEAK_BYTES_A_BYTE * BODY_BYTES


def taken(do: Callable[[], object]) -> int:
    """Bytes at the most, while it does it."""
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
