"""Requests that are almost right, drawn by chance: bodies of POST /filter, and whole HTTP requests as bytes."""

import json
import random
from collections.abc import Iterator, Sequence

from tests.extender.builders import node_json, owner

GOOD = b'{"Pod":{"metadata":{"name":"p","namespace":"d"}},"NodeNames":["h1"]}'
TOKENS = (
    *(b"NaN", b"-Infinity", b"1e999", b"-0", b"9" * 400, b"null", b"true", b"{}", b"[]", b'""', b"\xef\xbb\xbf"),
    *(b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\\udc00\\ud800", b"\\u0000", b"\x00", b"\n", b"\\", b'"', b"%s%n", b"//"),
    *(b'"pods":[null],', b'"Pods":null,'),
    *(
        b"[" * 3000,
        b'{"a":' * 3000,
        b'"Pod":',
        b'"nodenames":',
        b'"NODES":',
        b'"items":',
        b'"metadata":',
        b",",
    ),
)
PATHS = (
    *(b"/filter", b"/livez", b"/readyz", b"/metrics", b"/api/v1/nodes", b"/", b"/favicon.ico", b"/bind", b"/preempt"),
    *(b"/prioritize", b"//preempt/"),
    *(b"/filter/", b"//filter", b"/Filter", b"/filter?x=1", b"/%66ilter", b"/filter%00", b"/filter;a", b"*", b"filter"),
    *(b"http://127.0.0.1/filter", b"/../filter", b"/filter#x", b"/" + b"a" * 3000, b"/\xff", b"\\filter"),
)
PAGES = (
    *(b"/api/v1/nodes", b"/api/v1/nodes/h1", b"/api/v1/gates", b"/api/v1/pods/d/p", b"/api/v1/history"),
    *(b"/api/v1/impact", b"/api/v1", b"/api/v1/pods/d", b"/metrics", b"/livez", b"/readyz"),
)
PARAMETERS = (b"limit", b"continue", b"node", b"gate", b"kind", b"Limit", b"x", b"", b"%6cimit", b"limit[]", b"\xff")
VALUES = (
    *(
        b"1",
        b"5",
        b"1000",
        b"1001",
        b"0",
        b"-1",
        b"1e3",
        b"9" * 40,
        b"%31",
        b"\xd9\xa1",
        b"h1",
        b"node-0001",
        b"health",
    ),
    *(b"closed", b"opened", b"order", b"", b"%00", b"%", b"%zz", b"%ff", b"%0d%0aX:%20y", b"..", b"%2e%2e%2f", b"a/b"),
    *(b"a" * 3000, b"*", b"{}", b"'", b"<b>", b"\xff", b"+", b"%s%n", b"#"),
)
METHODS = (
    b"POST",
    b"GET",
    b"HEAD",
    b"PUT",
    b"DELETE",
    b"OPTIONS",
    b"PATCH",
    b"CONNECT",
    b"TRACE",
    b"post",
    b"PRI",
    b"",
)
VERSIONS = (b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/0.9", b"http/1.1", b"HTTP/1.1 x", b"")
HEADERS = (
    *(b"Content-Length: -1", b"Content-Length: 1, 2", b"Content-Length: 99999999999999999999", b"Content-Length: 0"),
    *(b"Content-Length: +5", b"Content-Length: 5 ", b"Content-Length : 5", b"Transfer-Encoding: chunked"),
    *(b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: \x0bchunked"),
    *(b"Expect: 100-continue", b"Expect: nothing", b"Connection: close", b"Connection: upgrade", b"Upgrade: h2c"),
    *(b"Host:", b"Host: 127.0.0.1", b"Host: evil.example.com", b"Host: [::1]", b"Content-Encoding: gzip"),
    *(b"X: " + b"y" * 9000, b"X", b": x", b" folded", b"\x00: x", b"X: \xff", b"X: a\rb", b"\xff: x", b"Trailer: X"),
)
BREAKS = (b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"\r\n ", b"")


def _seeds() -> list[bytes]:
    ordinary = {"metadata": {"name": "web-1", "namespace": "default", "uid": "u"}, "spec": {"containers": []}}
    pod = {
        "metadata": {"name": "p", "namespace": "d", "labels": {"a": "b"}, "ownerReferences": [owner("x", kind="Job")]},
        "spec": {"priorityClassName": "c", "priority": 7, "containers": [{"name": "c", "image": "i"}]},
    }
    names = {"Pod": pod, "Nodes": None, "NodeNames": ["h1", "u1", "x1", "m1"]}
    nodes = {"Pod": ordinary, "Nodes": {"metadata": {}, "items": [node_json("h1"), node_json("u1")]}}
    return [json.dumps(value, separators=(",", ":")).encode() for value in (names, nodes, nodes | names)]


def _preemptions() -> list[bytes]:
    pod = {"metadata": {"name": "p", "namespace": "d"}, "spec": {"priority": 7}}
    meta = {"h1": {"Pods": [{"UID": "a"}], "NumPDBViolations": 0}, "u1": {"Pods": [], "NumPDBViolations": 1}}
    victim = {"metadata": {"uid": "a", "name": "x", "labels": None}}
    whole = {name: {"Pods": [victim], "NumPDBViolations": 0} for name in ("h1", "x1")}
    values = (
        {"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": meta},
        {"Pod": pod, "NodeNameToVictims": whole, "NodeNameToMetaVictims": None},
    )
    return [json.dumps(value, separators=(",", ":")).encode() for value in values]


SEEDS = _seeds()
PREEMPTIONS = _preemptions()


def body(chance: random.Random, seeds: Sequence[bytes] = SEEDS) -> bytes:
    """A body of POST /filter, or another of these, with one to four faults."""
    made = bytearray(chance.choice(seeds))
    for _ in range(chance.choice((1, 1, 2, 4))):
        at, end = sorted((chance.randrange(len(made) + 1), chance.randrange(len(made) + 1)))
        match chance.randrange(6):
            case 0:
                made[at:at] = chance.choice(TOKENS)
            case 1:
                made[at:end] = chance.choice(TOKENS)
            case 2:
                made[at : at + 1] = bytes([chance.randrange(256)])
            case 3:
                del made[at : at + chance.randrange(1, 9)]
            case 4:
                made[at:at] = made[at:end]
            case _:
                del made[at:]
    return bytes(made)


def question(chance: random.Random) -> bytes:
    """A GET of one of the pages for people, whose path and query are nearly right or not at all."""
    path = chance.choice(PAGES)
    if chance.random() < 0.3:
        path += b"/" + chance.choice(VALUES)
    names = [chance.choice(PARAMETERS) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
    query = b"&".join(name + chance.choice((b"=", b"=", b"=", b"")) + chance.choice(VALUES) for name in names)
    mark = b"?" if query or chance.random() < 0.1 else b""
    headers = [b"Host: 127.0.0.1"]
    if chance.random() < 0.2:
        headers.append(b"If-None-Match: " + chance.choice((b"*", b'W/"x"', b'"', b"W/", b"\xff")))
    if chance.random() < 0.2:
        headers.append(chance.choice(HEADERS))
    return b"\r\n".join([b"GET " + path + mark + query + b" HTTP/1.1", *headers]) + b"\r\n\r\n"


def request(chance: random.Random) -> bytes:
    """A whole HTTP request in which something may be wrong anywhere: line, headers, framing, body."""
    method = chance.choice(METHODS) if chance.random() < 0.4 else b"POST"
    path = chance.choice(PATHS) if chance.random() < 0.5 else b"/filter"
    version = chance.choice(VERSIONS) if chance.random() < 0.2 else b"HTTP/1.1"
    content = body(chance) if chance.random() < 0.5 else GOOD
    lines = [b" ".join((method, path, version))]
    if chance.random() < 0.9:
        lines.append(b"Host: 127.0.0.1")
    lines += [chance.choice(HEADERS) for _ in range(chance.choice((0, 0, 1, 1, 2, 4)))]
    match chance.randrange(8):
        case 0:
            lines.append(b"Transfer-Encoding: chunked")
            content = b"".join(_chunked(chance, content))
        case 1:
            lines.append(b"Content-Length: %d" % (len(content) + chance.choice((-1, 1, 100, -len(content)))))
        case 2:
            pass  # no length at all
        case _:
            lines.append(b"Content-Length: %d" % len(content))
    chance.shuffle(lines[1:])
    if chance.random() < 0.1:
        ends = b"".join(line + chance.choice(BREAKS) for line in lines) + chance.choice(BREAKS)
    else:
        ends = b"\r\n".join(lines) + b"\r\n\r\n"
    whole = bytearray(ends + content)
    if chance.random() < 0.15:
        for _ in range(chance.randrange(1, 4)):
            whole[chance.randrange(len(whole))] = chance.randrange(256)
    if chance.random() < 0.1:
        del whole[chance.randrange(len(whole)) :]
    return bytes(whole)


def _chunked(chance: random.Random, content: bytes) -> Iterator[bytes]:
    while content:
        size = chance.randrange(1, len(content) + 1)
        said = size if chance.random() < 0.95 else chance.choice((0, size + 1, 2**64, 2**31))
        extension = chance.choice((b"", b"", b";x=1", b";" + b"x" * 300, b" "))
        yield b"%x%s\r\n%s\r\n" % (said, extension, content[:size])
        content = content[size:]
    yield chance.choice((b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"", b"0\r\n"))
