"""What a client may send, byte by byte, and what each of our two listeners makes of it.

A row: what it is; the bytes, after which the client says that it sends no more; the statuses that the verbs' listener
(our own loop, llhttp) answers in order; those of the people's (gunicorn, Flask). No status: closed without an answer.
A 404 would be of what was smuggled: bytes of one request that are taken for another. Where a body is too large a verb
says so with 200, as kube-scheduler shows nothing else to a user. A name in Host that is not ours, or none, is 421.
"""

from typing import NamedTuple

from extender.serve import limits
from extender.verbs.wire import BODY_LIMIT_BYTES

BODY = b'{"Pod":{},"NodeNames":["h1"]}'
HOST = b"Host: localhost\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
POST = b"POST /filter HTTP/1.1\r\n" + HOST
GET = b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n"
WHOLE = POST + LENGTH + b"\r\n" + BODY
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNK = b"%x\r\n%b\r\n" % (len(BODY), BODY)
SMUGGLED = b"GET /smuggled HTTP/1.1\r\n" + HOST + b"\r\n"


class Case(NamedTuple):
    what: str
    data: bytes
    verbs: tuple[int, ...]
    status_api: tuple[int, ...]


def get(line: bytes = b"GET /livez HTTP/1.1", headers: bytes = HOST) -> bytes:
    return line + b"\r\n" + headers + b"\r\n"


def post(headers: bytes, body: bytes = BODY) -> bytes:
    return POST + headers + b"\r\n" + body


CASES = [
    # Good ones.
    Case("a GET", GET, (200,), (200,)),
    Case("a POST with its length", WHOLE, (200,), (200,)),
    Case("a POST in chunks", CHUNKED + CHUNK + b"0\r\n\r\n", (200,), (200,)),
    Case("three in a row", GET + WHOLE + GET, (200, 200, 200), (200, 200, 200)),
    Case("blank lines before a request", b"\r\n\r\n" + GET, (200,), (400,)),
    Case("what follows Connection: close", get(headers=HOST + b"Connection: close\r\n") + SMUGGLED, (200,), (200,)),
    Case("HTTP/1.0, and what follows it", get(b"GET /livez HTTP/1.0", b"") + SMUGGLED, (200,), (421,)),
    Case("HTTP/1.0 with a Host", get(b"GET /livez HTTP/1.0"), (200,), (200,)),
    Case("a target in absolute form", get(b"GET http://localhost/livez HTTP/1.1"), (200,), (200,)),
    Case("a target in absolute form, of another host", get(b"GET http://other/livez HTTP/1.1"), (200,), (200,)),
    # Two framings.
    Case(
        "length and chunks", post(LENGTH + b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n" + SMUGGLED), (400,), (400,)
    ),
    Case("chunks and length", post(b"Transfer-Encoding: chunked\r\n" + LENGTH, CHUNK + b"0\r\n\r\n"), (400,), (400,)),
    Case("two lengths that differ", post(LENGTH + b"Content-Length: 5\r\n"), (400,), (400,)),
    Case("two lengths alike", post(LENGTH + LENGTH), (400,), (400,)),
    Case("two lengths in one header", post(b"Content-Length: 29, 29\r\n"), (400,), (400,)),
    Case("a length with a sign", post(b"Content-Length: +29\r\n"), (400,), (400,)),
    Case("a length below zero", post(b"Content-Length: -1\r\n", b"{"), (400,), (400,)),
    Case("a length in hexadecimal", post(b"Content-Length: 0x1d\r\n"), (400,), (400,)),
    Case("an empty length", post(b"Content-Length:\r\n"), (400,), (400,)),
    Case("a length of 5,000 digits", post(b"Content-Length: " + b"9" * 5000 + b"\r\n", b"{"), (400,), (400,)),
    Case("a length with an underscore", post(b"Content-Length: 2_9\r\n"), (400,), (400,)),
    Case("a blank before the colon of a length", post(b"Content-Length : 29\r\n"), (400,), (400,)),
    Case("chunks twice", post(b"Transfer-Encoding: chunked, chunked\r\n", CHUNK + b"0\r\n\r\n"), (400,), (400,)),
    Case(
        "chunks that are not last",
        post(b"Transfer-Encoding: chunked, identity\r\n", CHUNK + b"0\r\n\r\n"),
        (400,),
        (400,),
    ),
    Case("an encoding nobody knows", post(b"Transfer-Encoding: xchunked\r\n", CHUNK + b"0\r\n\r\n"), (400,), (501,)),
    Case(
        "chunks after a vertical tab", post(b"Transfer-Encoding: \x0bchunked\r\n", CHUNK + b"0\r\n\r\n"), (400,), (400,)
    ),
    Case(
        "a blank before the colon of chunks",
        post(b"Transfer-Encoding : chunked\r\n", CHUNK + b"0\r\n\r\n"),
        (400,),
        (400,),
    ),
    Case("chunks in HTTP/1.0", CHUNKED.replace(b"1.1", b"1.0") + CHUNK + b"0\r\n\r\n" + SMUGGLED, (200,), (400,)),
    Case(
        "a GET with a body that is a request",
        get(headers=HOST + b"Content-Length: %d\r\n" % len(SMUGGLED)) + SMUGGLED,
        (200,),
        (200,),
    ),
    # Chunks.
    Case("a chunk extension", CHUNKED + CHUNK.replace(b"\r\n{", b";a=b\r\n{") + b"0\r\n\r\n", (200,), (200,)),
    Case(
        "a chunk extension in quotes with a line end",
        CHUNKED + CHUNK.replace(b"\r\n{", b';a="\r\n"\r\n{') + b"0\r\n\r\n",
        (400,),
        (400,),
    ),
    Case("a chunk extension that is none", CHUNKED + b"5;a=\x01\r\nhello\r\n0\r\n\r\n", (400,), (400,)),
    Case("a chunk extension without end", CHUNKED + b"1;" + b"a" * 2**18, (400,), (400,)),
    Case(
        "a chunk extension that ends with a line feed",
        CHUNKED + b"2;\nxx\r\n1d\r\n0\r\n\r\n" + SMUGGLED,
        (400,),
        (400,),
    ),
    Case("a chunk size that is none", CHUNKED + b"zz\r\n", (400,), (400,)),
    Case("a chunk size with a prefix", CHUNKED + b"0x1d\r\n" + BODY + b"\r\n0\r\n\r\n", (400,), (400,)),
    Case("a chunk size with an underscore", CHUNKED + b"1_d\r\n" + BODY + b"\r\n0\r\n\r\n", (400,), (400,)),
    Case("a chunk size with a sign", CHUNKED + b"+1d\r\n" + BODY + b"\r\n0\r\n\r\n", (400,), (400,)),
    Case("a chunk size beyond 64 bits", CHUNKED + b"1000000000000001d\r\n" + BODY + b"\r\n0\r\n\r\n", (400,), (400,)),
    Case("a chunk size without digits", CHUNKED + b"\r\n" + BODY + b"\r\n0\r\n\r\n", (400,), (400,)),
    Case(
        "a chunk size that ends with a line feed",
        CHUNKED + CHUNK.replace(b"\r\n{", b"\n{") + b"0\r\n\r\n",
        (400,),
        (400,),
    ),
    Case("a chunk without its end", CHUNKED + b"5\r\nhelloXX0\r\n\r\n", (400,), (400,)),
    Case("a trailer", CHUNKED + CHUNK + b"0\r\na: b\r\n\r\n", (200,), (200,)),
    Case("a trailer that frames", CHUNKED + CHUNK + b"0\r\nContent-Length: 99\r\n\r\n" + GET, (400,), (400,)),
    Case("a trailer that is none", CHUNKED + CHUNK + b"0\r\nno trailer\r\n\r\n", (400,), (400,)),
    Case("many trailers", CHUNKED + CHUNK + b"0\r\n" + b"a: b\r\n" * 101 + b"\r\n", (400,), (400,)),
    Case("trailers without end", CHUNKED + CHUNK + b"0\r\n" + b"a: b\r\n" * 60_000 + b"\r\n", (400,), (400,)),
    Case("a body in many pieces", CHUNKED + b"1\r\na\r\n" * 10_000 + b"0\r\n\r\n", (400,), (400,)),
    # Heads.
    Case("a folded header", get(headers=HOST + b"X: a\r\n b\r\n"), (400,), (400,)),
    Case("a folded length", post(b"Content-Length:\r\n 29\r\n"), (400,), (400,)),
    Case("a first header that begins with a blank", get(headers=b" X: a\r\n" + HOST), (400,), (400,)),
    Case("bare line feeds", GET.replace(b"\r\n", b"\n"), (400,), (400,)),
    Case("one bare line feed", get(headers=b"X: a\n" + HOST), (400,), (400,)),
    Case("a bare carriage return in a header", get(headers=HOST + b"X: a\rb\r\n"), (400,), (400,)),
    Case("a NUL in a header", get(headers=HOST + b"X: a\0b\r\n"), (400,), (400,)),
    Case("a header without a colon", get(headers=HOST + b"X\r\n"), (400,), (400,)),
    Case("a header without a name", get(headers=HOST + b": a\r\n"), (400,), (400,)),
    Case("a header whose name has a blank", get(headers=HOST + b"X Y: a\r\n"), (400,), (400,)),
    Case("a header whose name has an underscore", get(headers=HOST + b"Content_Length: 5\r\n"), (200,), (200,)),
    Case("bytes beyond ASCII in a header", get(headers=HOST + b"X: \xff\r\n"), (200,), (200,)),
    Case("no Host", get(headers=b""), (400,), (421,)),
    Case("two Hosts", get(headers=HOST * 2), (400,), (400,)),
    Case("a Host of somebody else", get(headers=b"Host: evil.example\r\n"), (421,), (421,)),
    Case("many headers", get(headers=HOST + b"a: b\r\n" * 101), (431,), (431,)),
    Case("a long header", get(headers=HOST + b"a: " + b"b" * limits.HEAD_LIMIT_BYTES + b"\r\n"), (431,), (431,)),
    Case("a long target", get(b"GET /" + b"a" * limits.HEAD_LIMIT_BYTES + b" HTTP/1.1"), (414,), (414,)),
    # First lines.
    Case("no version", b"GET /livez\r\n\r\n", (505,), (400,)),
    Case("HTTP/0.9 by its name", get(b"GET /livez HTTP/0.9"), (505,), (400,)),
    Case("HTTP/1.2", get(b"GET /livez HTTP/1.2"), (400,), (200,)),
    Case("HTTP/2.0", get(b"GET /livez HTTP/2.0"), (505,), (400,)),
    Case("a version that is none", get(b"GET /livez HTTP/1.1x"), (400,), (400,)),
    Case("a version in lower case", get(b"GET /livez http/1.1"), (400,), (400,)),
    Case("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400,), (400,)),
    Case(
        "another protocol",
        get(headers=HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\n") + SMUGGLED,
        (400,),
        (200, 404),
    ),
    Case("CONNECT", get(b"CONNECT h:1 HTTP/1.1"), (400,), (404,)),
    Case("two blanks in the first line", get(b"GET  /livez HTTP/1.1"), (200,), (400,)),
    Case("a tab in the first line", get(b"GET\t/livez HTTP/1.1"), (400,), (400,)),
    Case("a method in lower case", get(b"get /livez HTTP/1.1"), (400,), (400,)),
    Case("a method nobody knows", get(b"BREW /livez HTTP/1.1"), (400,), (405,)),
    Case("no method", get(b"/livez HTTP/1.1"), (400,), (400,)),
    Case("a target of nobody", get(b"GET /smuggled HTTP/1.1"), (404,), (404,)),
    Case("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", (400,), (400,)),
    # Bodies.
    Case("an encoded body", post(LENGTH + b"Content-Encoding: gzip\r\n"), (415,), (415,)),
    Case("a large body, announced", post(b"Content-Length: %d\r\n" % (2**40), b"{"), (413,), (413,)),
    Case("a large body, in a chunk", CHUNKED + b"%x\r\n" % 2**24 + b" " * (BODY_LIMIT_BYTES + 1), (200,), (413,)),
    # Early ends.
    Case("nothing", b"", (), ()),
    Case("half a first line", b"GET /li", (), ()),
    Case("half a head", POST, (), ()),
    Case("half a body", POST + LENGTH + b"\r\n{", (), (400,)),
    Case("half a chunk", CHUNKED + b"1d\r\n{", (), (400,)),
    Case("chunks without their end", CHUNKED + CHUNK, (), (400,)),
    Case("a good one and half of another", WHOLE + POST, (200,), (200,)),
    Case("a good one and nonsense", WHOLE + b"nonsense\r\n\r\n", (200, 400), (200, 400)),
]
