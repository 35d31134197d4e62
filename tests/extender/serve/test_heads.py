"""Random requests: who knows many heads makes of them what one makes who asks the parser each time.

Heads are looked for in the bytes by our own hand. That is allowed for one reason: what was found is what the parser has
made of equal bytes. So whatever a client sends, knowing must not show.
"""

import random

import pytest

from extender.serve.http import Heads, Reader
from tools.kit.scope import draws

STREAMS = draws(4_000, 20_000)
METHODS = (b"POST", b"GET", b"HEAD", b"PUT")
TARGETS = (b"/filter", b"/livez", b"/filter?timeout=1s", b"*")
VERSIONS = (*[b"1.1"] * 20, b"1.0", b"2.0")
HOSTS = (*[(b"Host: h",)] * 20, (b"host:i",), (), (b"Host: h", b"Host: i"))
OTHERS = (
    *(b"Connection: close", b"Connection: keep-alive", b"Connection: Upgrade\r\nUpgrade: h2c", b"Expect: 100-continue"),
    *(b"Content-Encoding: gzip", b"Content-Encoding: identity", b"Content-Length: 3", b"Transfer-Encoding: chunked"),
    *(b"X: a\r\n b", b"X:", b": x", b"X: \x80", b"Content-Length : 3", b"Transfer-Encoding: gzip, chunked"),
)
BODIES = (b"", b"{}", b"abc", b"{}\r\n\r\n", b"\r\n\r\n", b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"x" * 40)
JOINTS = (b"", b"", b"", b"", b"\r\n", b"\r\n\r\n", b"\n", b" ")


class Unknowing(Heads):
    """The parser is asked each time."""

    def find(self, _data):
        return None

    def learn(self, _data, _request):
        pass


class Knowing(Heads):
    """known: how often a head was."""

    known = 0

    def find(self, data):
        found = super().find(data)
        self.known += found is not None
        return found


def message(draw):
    """A request, nearly always one that can be read."""
    body = draw.choice(BODIES)
    headers = [*draw.choice(HOSTS)]
    match draw.randrange(12):
        case 0:
            headers.append(b"Transfer-Encoding: chunked")
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
        case 1 if not body:
            pass
        case 2:
            headers.append(b"Content-Length: %d" % max(0, len(body) + draw.choice((-1, 1))))
        case _:
            headers.append(b"Content-Length: %d" % len(body))
    if draw.random() < 0.2:
        headers.insert(draw.randrange(len(headers) + 1), draw.choice(OTHERS))
    head = b"%b %b HTTP/%b" % (draw.choice(METHODS), draw.choice(TARGETS), draw.choice(VERSIONS))
    return b"\r\n".join([head, *headers, b"", body])


def packets(draw, messages):
    """A few of the messages on one connection, mostly one a packet, now and then with a byte that is another one."""
    stream = []
    for one in draw.choices(messages, k=draw.randint(1, 5)):
        data = draw.choice(JOINTS) + one
        if draw.random() < 0.1:
            at = draw.randrange(len(data))
            data = data[:at] + draw.choice((b"", b"\r", b"\n", b" ", b"\0", b"9")) + data[at + draw.randrange(2) :]
        match draw.randrange(5):
            case 0 if len(data) > 1:
                at = draw.randrange(1, len(data))
                stream += [data[:at], data[at:]]
            case 1 if stream:
                stream[-1] += data
            case _:
                stream.append(data)
    return stream


def seen(reader):
    """What the owner of a reader sees after each packet. He takes the requests."""
    requests = list(reader.complete)
    reader.complete.clear()
    state = (
        reader.within,
        reader.within and (reader.in_body, reader.expects, reader.body_bytes, reader.announced_bytes),
    )
    return requests, reader.refusal, state


def test_whoever_knows_heads_makes_of_every_packet_what_the_parser_makes_of_it(seed):
    draw = random.Random(seed)
    messages = [message(draw) for _ in range(300)]
    heads = Knowing()
    for one in messages:
        Reader(heads).feed(one)
    asked = 0
    for _ in range(STREAMS):
        knows, asks = Reader(heads), Reader(Unknowing())
        stream = packets(draw, messages)
        for number, packet in enumerate(stream):
            knows.feed(memoryview(packet))
            asks.feed(packet)
            asked += 1
            assert seen(asks) == seen(knows), (number, stream)
    assert heads.known > asked / 10


@pytest.mark.parametrize("method", METHODS)
def test_of_one_that_comes_again_nothing_is_asked_of_the_parser(method):
    """Else the comparison above would compare the parser with itself."""
    heads = Knowing()
    for known in (0, 1, 2):
        Reader(heads).feed(b"%b /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}" % method)
        assert known == heads.known
