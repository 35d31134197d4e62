"""What the suite `parsers` compares: they read the same, and answer the same."""

from contextlib import ExitStack

import pytest

from tools.bench import parsers
from tools.bench.asking import ask, node_name, request_for
from tools.bench.filter_latency import Round
from tools.bench.parser_rungs import READERS

BODY = request_for(["a", "b"])
CALL = b"POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)


@pytest.mark.parametrize("cut", [0, 10, len(CALL) - len(BODY), len(CALL) - 5], ids=["whole", "head", "border", "body"])
@pytest.mark.parametrize("name", READERS)
def test_each_reads_a_call_that_comes_whole_or_in_two_pieces(name: str, cut: int) -> None:
    reader, heads = READERS[name]
    one, calls = reader(heads()), []
    for _ in range(3):
        for piece in (CALL[:cut], CALL[cut:]):
            if piece:
                one.feed(piece)
        calls += [(call.method, call.target, bytes(call.body), call.keep) for call in one.complete]
        one.complete.clear()
    assert [(b"POST", b"/filter", BODY, True)] * 3 == calls


def test_gunicorns_own_worker_and_our_loop_give_the_same_verdicts() -> None:
    names = [node_name(i) for i in range(120)]
    with ExitStack() as running:
        told = []
        for name in ("asgi", "gunicorn"):
            arm = parsers.start(name)
            running.enter_context(arm.child)
            told.append(ask(arm.url, names))
    assert told == [[name for i, name in enumerate(names) if i % 50]] * 2


def test_each_parser_is_held_against_none_round_by_round() -> None:
    rounds = [
        {name: Round(slow * (1.0 + n), 0.0, slow * (2.0 + n)) for n, name in enumerate(parsers.PARSERS)}
        for slow in (1.0, 7.0)
    ]
    found = {figure.name: figure.value for figure in parsers.summarise(812, rounds)}
    assert {1.0, 2.0, 3.0, 4.0, 5.0} == {value for name, value in found.items() if name.endswith("p50_ratio")}
    assert 1.5 == found["parser_812_known_cpu_ratio"]
