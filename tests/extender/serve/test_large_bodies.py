"""Which large body is read next, by a clock that only the test moves."""

import pytest

from extender.serve import limits
from extender.serve.connection import Connection, Stage
from extender.serve.eviction import LargeBodies

BODY_BYTES = 2_000_000
HEAD = b"POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % BODY_BYTES
BUFFER_BYTES = 2**18  # what the kernel holds of a client
TICK_S = 0.001
KUBE_SCHEDULER_WAITS_S = 1.0  # httpTimeout of docs/registration.md


class Clients:
    """All clients, the kernel's buffers and the server. fast: bytes that a client sends a tick."""

    def __init__(self):
        self.monotonic = 0.0
        self.seniors = set()
        self.kernel = {}
        self.sends = {}
        self.turns = LargeBodies(ready_bytes=lambda one: self.kernel[one], seniors=lambda: self.seniors)
        self._look_at = 0.0

    def come(self, sends, *, first=b"x", senior=False):
        """sends: how many bytes it sends in the tick of the number that it is given."""
        connection = Connection(self.monotonic)
        if senior:
            self.seniors.add(connection)
        self.kernel[connection], self.sends[connection] = 0, sends
        self._read(connection, HEAD + first)
        return connection

    def _read(self, connection, data):
        connection.receive(data, self.monotonic)
        if not connection.requests:
            self.turns.asks(connection, self.monotonic)
            self.turns.pass_on(self.monotonic)

    def tick(self):
        number = round(self.monotonic / TICK_S)
        for one, sends in self.sends.items():
            self.kernel[one] = min(BUFFER_BYTES, self.kernel[one] + sends(number))
        for one in list(self.kernel):
            count = min(self.kernel[one], limits.RECEIVE_BYTES)
            if count and one.wants_bytes:
                self.kernel[one] -= count
                self._read(one, b"x" * count)
        if self.monotonic >= self._look_at:
            self._look_at = self.monotonic + limits.LARGE_BODY_LOOK_S
            self.turns.pass_on(self.monotonic)
        self.monotonic += TICK_S

    def took_s(self, connection, limit_s=20.0):
        began = self.monotonic
        while connection.stage is not Stage.ASKED:
            assert self.monotonic < began + limit_s
            self.tick()
        return self.monotonic - began


def fast(_number):
    return 100_000  # 100 MB/s


def stalls(_number):
    return 0


def drips(number):
    return number % 100 == 0


ONE_PAUSE_S = limits.LARGE_BODY_PAUSE_S + 2 * limits.LARGE_BODY_LOOK_S


@pytest.mark.parametrize("count", [4, 32, 100])
@pytest.mark.parametrize("sends", [stalls, drips], ids=["one byte and no more", "a byte each 100 ms"])
def test_clients_without_progress_cost_a_large_body_one_pause_however_many_they_are(count, sends):
    clients = Clients()
    alone_s = clients.took_s(clients.come(fast))
    clients = Clients()
    for _ in range(count):
        clients.come(sends)
        for _ in range(7):
            clients.tick()
    took_s = clients.took_s(clients.come(fast))
    assert took_s <= alone_s + ONE_PAUSE_S + count * TICK_S
    assert took_s < KUBE_SCHEDULER_WAITS_S / 2


def half_fast(_number):
    return 2 * limits.LARGE_BODY_STEP_BYTES // 50  # twice the least rate


def begins(number):
    return 2 * limits.LARGE_BODY_STEP_BYTES if number < 3 else 0


@pytest.mark.parametrize("count", [4, 32, 100])
@pytest.mark.parametrize(
    "sends", [half_fast, begins], ids=["each as fast as a turn needs", "each begins well and stops"]
)
def test_senior_waits_for_one_pause_while_other_clients_make_progress(count, sends):
    clients = Clients()
    for _ in range(count):
        clients.come(sends)
    for _ in range(10):
        clients.tick()
    assert clients.took_s(clients.come(fast, senior=True)) < KUBE_SCHEDULER_WAITS_S / 4


def test_client_that_makes_progress_keeps_its_turn():
    clients = Clients()
    first, second = clients.come(fast), clients.come(fast)
    clients.took_s(first)
    assert (Stage.ASKED, Stage.BODY, True) == (first.stage, second.stage, second.waits)
    assert second.reader.body_bytes <= limits.RECEIVE_BYTES


def test_client_that_lost_its_turn_goes_on_when_it_sends_again():
    clients = Clients()
    paused = clients.come(lambda number: 0 if number < 200 else 100_000)
    for _ in range(100):
        clients.tick()
    other = clients.come(fast)
    clients.took_s(other)
    assert (True, Stage.ASKED) == (paused.waits, other.stage)
    clients.turns.leaves(other, clients.monotonic)
    clients.took_s(paused)


def test_turn_ends_when_others_wait_and_it_is_too_old():
    clients = Clients()
    slow, other = clients.come(half_fast), clients.come(half_fast)
    while not slow.waits:
        assert clients.monotonic < 2 * limits.LARGE_BODY_TURN_S
        clients.tick()
    assert (False, True) == (other.waits, clients.monotonic >= limits.LARGE_BODY_TURN_S)


def test_client_whose_whole_body_is_here_keeps_its_turn_until_it_is_answered():
    clients = Clients()
    first, second = clients.come(fast), clients.come(fast)
    clients.took_s(first)
    for _ in range(1000):
        clients.tick()
    assert second.waits
    assert second is clients.turns.leaves(first, clients.monotonic)
    assert (False, False) == (first.waits, second.waits)


def test_client_that_sends_nothing_takes_no_turn_from_another():
    clients = Clients()
    first, second = clients.come(stalls), clients.come(stalls)
    for _ in range(500):
        clients.tick()
    assert (False, True) == (first.waits, second.waits)


def test_turns_prolong_the_wait_for_a_body_to_twice_its_limit_at_most():
    clients = Clients()
    one = clients.come(stalls)
    assert limits.BODY_LIMIT_S == one.deadline
    for after_s, expected in ((9.9, 9.9 + limits.LARGE_BODY_TURN_S), (19.9, 20.0), (25.0, 20.0)):
        one.granted(after_s)
        assert expected == one.deadline


def test_only_the_client_with_the_turn_may_go_on():
    clients = Clients()
    first, second = clients.come(stalls), clients.come(stalls)
    assert [clients.turns.asks(one, clients.monotonic) for one in (first, second, first)] == [True, False, True]
    assert (first.waits, second.waits) == (False, True)
    assert clients.turns.leaves(first, clients.monotonic) is second
    assert clients.turns.asks(second, clients.monotonic)
