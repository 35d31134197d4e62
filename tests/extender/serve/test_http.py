"""Bytes to requests, in whatever pieces they come; and what is refused in the middle of a packet."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.serve import limits
from extender.serve.http import Answer, Heads, Reader, head_of, usual_head
from tests.contract.wire_cases import CASES

BODY = b'{"Pod":{},"NodeNames":["a","b"]}'
POST = b"POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
CHUNKED = b"POST /filter HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
IN_CHUNKS = CHUNKED + b"5\r\n" + BODY[:5] + b"\r\n%x\r\n" % (len(BODY) - 5) + BODY[5:] + b"\r\n0\r\n\r\n"
GET = b"GET /livez HTTP/1.1\r\nHost: h\r\n\r\n"


class Strangers(Heads):
    """Of whom none is known."""

    def find(self, _data):
        return None


def read(*pieces):
    reader = Reader()
    for piece in pieces:
        reader.feed(piece)
    return reader


def requests_of(reader):
    return [(one.method, one.target, bytes(one.body), one.keep) for one in reader.complete]


@pytest.mark.parametrize("data", [POST, IN_CHUNKS], ids=["with a length", "in chunks"])
def test_a_request_is_the_same_wherever_it_is_cut(data):
    for at in range(1, len(data)):
        reader = read(data[:at], data[at:])
        assert [(b"POST", b"/filter", BODY, True)] == requests_of(reader)
        assert (None, False) == (reader.refusal, reader.within)


@settings(deadline=None)
@given(st.lists(st.sampled_from([POST, IN_CHUNKS, GET]), min_size=1, max_size=6), st.data())
def test_requests_in_a_row_come_out_in_order_whatever_the_packets(sent, data):
    stream = b"".join(sent)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream) - 1), max_size=20)))
    pieces = [stream[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    expected = [(b"GET", b"/livez", b"", True) if one == GET else (b"POST", b"/filter", BODY, True) for one in sent]
    assert expected == requests_of(read(*pieces))


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=20))
def test_no_bytes_make_the_reader_fail(pieces):
    reader = read(*pieces)
    assert reader.refusal is None or reader.refusal.status.value in {400, 413, 414, 415, 431, 505}


OTHER = POST.replace(b'"a"', b'"z"')
CLOSES = POST.replace(b"Host", b"Connection: close\r\nHost")


@pytest.mark.parametrize(
    ("pieces", "bodies"),
    [
        pytest.param([POST], [BODY], id="once more"),
        pytest.param([OTHER, POST], [BODY.replace(b'"a"', b'"z"'), BODY], id="another body of that length"),
        pytest.param([POST[:-1]], [], id="not all of the body"),
        pytest.param([POST[:-1], POST[-1:]], [BODY], id="the rest of the body later"),
        pytest.param([POST[:10], POST[10:]], [BODY], id="a part of the head"),
        pytest.param([POST + POST], [BODY, BODY], id="two in a packet"),
        pytest.param([POST + GET[:7], GET[7:]], [BODY, b""], id="more than the body"),
        pytest.param([POST + b"\r", b"\n" + POST], [BODY, BODY], id="a blank line between"),
        pytest.param([POST.replace(b"Host: h", b"Host: i")], [BODY], id="another head"),
        pytest.param([CLOSES, POST], [BODY], id="one that ends the connection"),
        pytest.param([IN_CHUNKS, POST, IN_CHUNKS], [BODY] * 3, id="chunks"),
        pytest.param([b"GARBAGE\r\n\r\n", POST], [], id="after what is refused"),
    ],
)
def test_a_known_head_is_read_as_an_unknown_one_is(pieces, bodies):
    heads = Heads()
    for known in (POST, IN_CHUNKS, GET, CLOSES):
        Reader(heads).feed(known)
    knows, never = Reader(heads), Reader()
    for piece in pieces:
        knows.feed(memoryview(piece))
        never._heads = Heads()
        never.feed(piece)
    assert bodies == [request.body for request in knows.complete]
    assert never.complete == knows.complete
    assert (never.within, never.refusal) == (knows.within, knows.refusal)


def test_known_heads_take_little_memory():
    heads = Heads()
    for number in range(limits.KNOWN_HEADS_MAX + 50):
        Reader(heads).feed(POST.replace(b"Host: h", b"Host: h%d" % number))
    Reader(heads).feed(POST.replace(b"Host", b"A: %b\r\nHost" % (b"a" * limits.KNOWN_HEAD_BYTES)))
    assert limits.KNOWN_HEADS_MAX == len(heads)
    assert None is heads.find(POST.replace(b"Host: h", b"Host: h0"))
    assert None is not heads.find(POST.replace(b"Host: h", b"Host: h170"))


def told(refusal):
    """The status of the answer: a verb says with 200 that a body is too large, if what comes of it can be read past."""
    skipped = refusal.status.value == 413 and refusal.rest_bytes <= limits.DISCARD_MAX_BYTES
    return 200 if skipped else refusal.status.value


@pytest.mark.parametrize("case", CASES, ids=[case.what for case in CASES])
def test_what_is_read_and_what_is_refused_whatever_the_packets(case):
    """404 and 421 are said of what was read."""
    expected = [status if status in {400, 413, 414, 415, 431, 505} else 200 for status in case.verbs]
    for most in (limits.RECEIVE_BYTES, 997):
        reader = Reader()
        for at in range(0, len(case.data), most):
            reader.feed(case.data[at : at + most])
        refused = [] if reader.refusal is None else [told(reader.refusal)]
        assert expected == [200] * len(reader.complete) + refused
        assert reader.refusal is None or reader.body_bytes == 0


def test_a_head_that_never_ends_is_refused_before_it_fills_the_memory():
    reader = Reader()
    reader.feed(b"GET / HTTP/1.1\r\nHost: h\r\na: ")
    pieces = 0
    while reader.refusal is None:
        reader.feed(b"b" * 1000)
        pieces += 1
    assert (431, True) == (reader.refusal.status.value, pieces < 140)


@pytest.mark.parametrize("before", [b"", POST, IN_CHUNKS], ids=["at the beginning", "after a request", "after chunks"])
def test_blank_lines_before_a_request_are_read_past_and_refused_when_they_do_not_end(before):
    """Nothing of them is kept, and nothing of a request has come that could be waited for."""
    reader = read(before)
    for _ in range(limits.HEAD_LIMIT_BYTES // 1000):
        reader.feed(b"\r\n" * 500)
    assert (None, False) == (reader.refusal, reader.within)
    reader.feed(b"\r\n" * 500)
    assert (400, b"", 0) == (reader.refusal.status.value, reader.refusal.target, reader.refusal.rest_bytes)


@pytest.mark.parametrize("known", [Heads(), Strangers()], ids=["a head that is known", "a head that is parsed"])
def test_blank_lines_are_counted_anew_after_each_request(known):
    reader = Reader(known)
    for _ in range(100):
        reader.feed(b"\r\n" * 500)
        reader.feed(GET)
        assert ((GET.split()[1], True), None) == ((reader.complete[0].target, reader.complete[0].keep), reader.refusal)
        reader.complete.clear()


def test_before_a_refusal_the_good_requests_are_answered():
    reader = read(POST + GET + b"nonsense\r\n\r\n")
    assert 2 == len(reader.complete)
    assert 400 == reader.refusal.status.value


def test_more_in_one_packet_than_we_answer_ends_the_connection_with_the_last_of_them():
    reader = read(GET * 100)
    assert limits.PIPELINED_MAX == len(reader.complete)
    assert [True] * (limits.PIPELINED_MAX - 1) + [False] == [one.keep for one in reader.complete]
    assert reader.refusal is None


@pytest.mark.parametrize(
    "head",
    [b"GET / HTTP/1.0\r\n\r\n", b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"],
    ids=["X41 HTTP/1.0", "X41 Connection: close"],
)
def test_what_follows_the_last_request_is_not_looked_at(head):
    reader = read(head + b"rubbish", b"more")
    assert ([False], None) == ([one.keep for one in reader.complete], reader.refusal)


def test_a_large_body_is_one_buffer():
    body = b"x" * (limits.LARGE_BODY_BYTES + 100)
    reader = Reader()
    reader.feed(POST.partition(b"\r\n\r\n")[0].replace(b"%d" % len(BODY), b"%d" % len(body)) + b"\r\n\r\n")
    for at in range(0, len(body), limits.RECEIVE_BYTES):
        reader.feed(body[at : at + limits.RECEIVE_BYTES])
    (request,) = reader.complete
    assert (bytearray, body) == (type(request.body), bytes(request.body))


def test_the_head_of_an_answer():
    head = head_of(Answer(405, b"{}", allow=b"POST"), b"now", keep=False)
    assert (
        b"HTTP/1.1 405 Method Not Allowed\r\nDate: now\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
        b"Allow: POST\r\nConnection: close\r\n\r\n"
    ) == head


@pytest.mark.parametrize("length", [0, 10, 123_456])
def test_the_usual_head_is_what_is_written_for_the_answer_itself(length):
    date = b"Fri, 27 Nov 2026 02:03:16 GMT"
    assert head_of(Answer(200, b"x" * length), date, keep=True) == usual_head(date) % length
