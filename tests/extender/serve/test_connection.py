"""One client's side, by a clock that stands still until it is moved."""

import pytest

from extender.serve import limits
from extender.serve.connection import Connection, Stage
from extender.serve.eviction import Held, first_to_go, gives_its_place, is_senior
from extender.serve.fairness import SENIORS, Fairness, cost_s

POST = b"POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n"


def answered(connection, at, *, keep=True):
    """As the loop does when the kernel takes all of it."""
    connection.next()
    connection.out.append(b"answer")
    if not keep:
        connection.end()
    connection.out.clear()
    connection.settle(at)


def at_stage(stage, at=0.0):
    connection = Connection(at)
    match stage:
        case Stage.HEAD:
            connection.receive(b"POST", at)
        case Stage.BODY:
            connection.receive(POST, at)
        case Stage.ASKED:
            connection.receive(POST + b"0123456789", at)
        case Stage.ANSWERING:
            connection.receive(POST + b"0123456789", at)
            connection.next()
            connection.out.append(b"answer")
            connection.settle(at)
        case Stage.CLOSING:
            connection.receive(POST + b"0123456789", at)
            answered(connection, at, keep=False)
    return connection


@pytest.mark.parametrize(
    ("stage", "limit_s"),
    [
        (Stage.IDLE, 120.0),
        (Stage.HEAD, 5.0),
        (Stage.BODY, 10.0),
        (Stage.ASKED, float("inf")),
        (Stage.ANSWERING, 10.0),
        (Stage.CLOSING, 1.0),
    ],
    ids=lambda value: getattr(value, "what", ""),
)
def test_how_long_is_waited_for_what(stage, limit_s):
    connection = at_stage(stage, 100.0)
    assert (stage, 100.0 + limit_s) == (connection.stage, connection.deadline)


def test_bytes_that_drip_move_no_deadline():
    connection = Connection(0.0)
    for second, byte in enumerate(POST):
        connection.receive(bytes([byte]), float(second))
        if connection.stage is Stage.BODY:
            break
        assert (5.0, 0.0) == (connection.deadline, connection.since)
    began_s = len(POST) - 1
    for second in range(9):
        connection.receive(b"x", began_s + 1.0 + second)
    assert (began_s + 10.0, 0.0) == (connection.deadline, connection.since)


def test_wait_for_a_body_begins_with_its_head_and_not_with_the_rest_before_it():
    """Else a client that rested for a minute would be the first that is closed where too many bytes are held."""
    connection = Connection(0.0)
    connection.receive(POST + b"0123", 60.0)
    assert (Stage.BODY, 60.0) == (connection.stage, connection.since)


def test_an_answer_that_is_read_byte_by_byte_has_the_time_of_one_that_is_not_read():
    connection = at_stage(Stage.ANSWERING, 100.0)
    for second in range(5):
        connection.out[0] = connection.out[0][1:]
        connection.settle(101.0 + second)
    assert (Stage.ANSWERING, 110.0) == (connection.stage, connection.deadline)


def test_blank_lines_between_two_requests_move_no_deadline():
    connection = at_stage(Stage.IDLE, 100.0)
    for second in range(5):
        connection.receive(b"\r\n", 101.0 + second)
    assert (Stage.IDLE, 100.0, 220.0) == (connection.stage, connection.since, connection.deadline)


def test_x40_a_kept_connection_rests_two_minutes_from_its_last_answer():
    connection = at_stage(Stage.ASKED, 10.0)
    answered(connection, 11.0)
    assert (Stage.IDLE, 131.0) == (connection.stage, connection.deadline)
    assert limits.IDLE_LIMIT_S > 95


def test_the_next_request_of_a_packet_is_answered_after_the_first():
    connection = Connection(0.0)
    connection.receive((POST + b"0123456789") * 2, 0.0)
    answered(connection, 0.0)
    assert (Stage.ASKED, False) == (connection.stage, connection.wants_bytes)
    answered(connection, 0.0)
    assert (Stage.IDLE, True) == (connection.stage, connection.wants_bytes)


def test_after_the_last_answer_a_little_is_read_past():
    connection = at_stage(Stage.CLOSING)
    connection.receive(b"x" * limits.RECEIVE_BYTES, 0.5)
    assert (True, False) == (connection.finished, connection.ended)
    connection.receive(b"x", 0.5)
    assert connection.ended


def test_of_a_refused_body_all_is_read_past_and_longer():
    connection = Connection(0.0)
    connection.receive(POST.replace(b"10", b"57000000"), 0.0)
    assert 413 == connection.next().status.value
    connection.end()
    connection.settle(0.0)
    connection.receive(b"x" * 57_000_000, 5.0)
    assert (10.0, False) == (connection.deadline, connection.ended)


def test_what_is_held_is_known():
    connection = Connection(0.0)
    assert 0 == connection.held_bytes
    connection.receive(POST + b"01234", 0.0)
    assert connection.held_bytes >= 5
    connection.receive(b"56789", 0.0)
    assert connection.held_bytes >= 10
    answered(connection, 0.0)
    assert 0 == connection.held_bytes


def test_the_first_to_go_is_who_we_have_waited_for_longest_and_never_who_waits_for_us():
    silent, half, asked = Connection(1.0), at_stage(Stage.HEAD, 2.0), at_stage(Stage.ASKED, 0.0)
    assert silent is first_to_go([asked, half, silent])
    assert half is first_to_go([asked, half])
    assert asked is first_to_go([asked])
    assert None is first_to_go([])


def known(at, verdicts=1):
    connection = Connection(at)
    connection.verdicts = verdicts
    return connection


@pytest.mark.parametrize(
    ("newcomers", "answered_ones", "expected"),
    [
        pytest.param(127, 1, "newcomer", id="a silent crowd takes no place from kube-scheduler at rest"),
        pytest.param(1, 127, "known", id="a crowd that had verdicts takes no place from a kube-scheduler that comes"),
        pytest.param(128, 0, "newcomer", id="among newcomers only"),
        pytest.param(0, 128, "known", id="among those that had verdicts only"),
        pytest.param(32, 0, "newcomer", id="a small table of newcomers"),
    ],
)
def test_who_gives_its_place(newcomers, answered_ones, expected):
    crowd = [Connection(100.0 + i) for i in range(newcomers)] + [known(float(i)) for i in range(answered_ones)]
    victim = gives_its_place(crowd)
    of_its_kind = [one.since for one in crowd if one.verdicts == victim.verdicts]
    assert (expected == "known", min(of_its_kind)) == (victim.verdicts > 0, victim.since)


@pytest.mark.parametrize(
    ("since", "verdicts", "others", "expected"),
    [
        pytest.param(0.0, 500, [(50.0, 1)] * 127, "another", id="one at rest that had many, beside who had one each"),
        pytest.param(60.0, 1, [(50.0, 500)] * 127, "another", id="one that has just come, beside who had many"),
        pytest.param(0.0, 1, [(50.0, 500)] * 127, "it", id="one at rest that had one, beside who had many"),
        pytest.param(0.0, 500, [(50.0, 1)] * 3, "it", id="in a table where all have such places"),
    ],
)
def test_the_most_verdicts_keep_a_place_and_among_the_others_who_was_there_last(since, verdicts, others, expected):
    one = known(since, verdicts)
    victim = gives_its_place([one, *(known(*other) for other in others)])
    assert expected == ("it" if victim is one else "another")


def test_those_few_are_senior_that_came_first_and_have_had_verdicts():
    silent, first = Connection(0.0), known(1.0)
    others = [known(2.0 + number) for number in range(SENIORS)]
    connections = [silent, first, *others]
    assert [first, *others[:-1]] == [one for one in connections if is_senior(one, connections)]


def test_a_crowd_that_comes_again_and_again_with_a_verdict_each_takes_no_place_from_one_at_rest():
    crowd, resting = [], known(0.0, 100)
    crowd.append(resting)
    for second in range(1, 1000):
        if len(crowd) == limits.CONNECTIONS_MAX:
            crowd.remove(gives_its_place(crowd))
        crowd.append(known(float(second)))
    assert resting in crowd


def test_too_many_bytes_cost_the_one_that_we_have_waited_for_longest_among_those_that_hold_any():
    held = Held(100)
    idle, old, new = Connection(0.0), at_stage(Stage.BODY, 1.0), at_stage(Stage.BODY, 2.0)
    for connection in (idle, old, new):
        held.update(connection)
    assert [old, None] == [held.pop_excess(), held.pop_excess()]
    assert new.held_bytes == held.sum_bytes


def test_too_many_bytes_of_complete_requests_cost_the_largest_and_not_the_oldest():
    held = Held(3000)
    small, large = Connection(0.0), Connection(1.0)
    small.receive(POST + b"0123456789", 0.0)
    for _ in range(5):
        large.receive(POST + b"0123456789", 1.0)
    assert [False, True] == [held.update(one) for one in (small, large)]
    assert [large, None] == [held.pop_excess(), held.pop_excess()]


def test_what_is_cheap_is_answered_before_what_is_dear_and_nothing_is_put_off_for_ever():
    turns = Fairness(connections=10)
    turns.put("dear", cost_s(b"x," * 100_000), 0.0)
    turns.put("cheap", cost_s(b"x," * 100), 0.1)
    assert ["cheap", "dear"] == [turns.take(), turns.take()]
    turns.put("dear", cost_s(b"x," * 100_000), 0.0)
    for number in range(1000):
        turns.put(number, cost_s(b""), number * 0.01)
    order = [turns.take() for _ in range(len(turns))]
    assert 0 < order.index("dear") < 999
