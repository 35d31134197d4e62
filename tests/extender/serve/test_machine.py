"""What clients do, in any order, neither stops the loop nor makes it miscount, nor costs a known client its answer."""

import sys

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from extender.serve.connection_table import ConnectionTable
from tests.extender.serve.machine import Clients, Handshake, Spins
from tools.kit.scope import draws

USUAL = settings(
    max_examples=draws(20, 60),
    stateful_step_count=15,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    database=None,
)


class Greeted(Clients):
    """The same over a stream with a handshake, which clients may stall in."""

    stream = Handshake


@pytest.mark.parametrize("machine", [Clients, Greeted], ids=["plain", "with a handshake"])
def test_no_order_of_what_clients_do_breaks_the_loop(machine):
    run_state_machine_as_test(machine, settings=USUAL)


def planted_where(where, monkeypatch):
    """The function `where` counts closed clients too: the fault that made a worker spin."""
    book = ConnectionTable.book

    def planted(self, client):
        if sys._getframe(1).f_code.co_name == where:
            self.held.update(client)
        book(self, client)

    monkeypatch.setattr(ConnectionTable, "book", planted)


def test_machine_finds_a_client_that_is_counted_after_its_interim_answer_could_not_be_sent(monkeypatch):
    planted_where("_received_part", monkeypatch)
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(Clients, settings=settings(USUAL, max_examples=400))


def next_heads_behind_bodies(machine):
    """Four clients end their bodies in one turn, each with the begin of the next behind. That is more than may be held,
    and the first of them is the smallest: another one is closed for it, which has yet to be queued."""
    machine.begin()
    small = "crowd", (1, ("head", (b"none", 15_000, False, 10_000, False)))
    large = "crowd", (3, ("head", (b"none", 195_000, False, 190_000, False)))
    machine.act([(0, small), (0, ("reset", None)), (0, large)], 12)
    machine.act([(0, ("all go on", (b"none", 195_000, False, 60_000, False)))], 1)
    machine.check_bytes_are_counted_of_open_clients_alone_and_exactly()
    machine.check_known_idle_client_is_answered()


def test_client_closed_for_another_ones_bytes_in_its_own_turn_is_not_counted():
    machine = Clients()
    try:
        next_heads_behind_bodies(machine)
    finally:
        machine.teardown()


def test_machine_finds_a_client_that_is_queued_after_it_was_closed_in_the_same_turn(monkeypatch):
    planted_where("_queue", monkeypatch)
    machine = Clients()
    try:
        with pytest.raises(AssertionError):
            next_heads_behind_bodies(machine)
    finally:
        machine.teardown()


def test_machine_ends_a_turn_that_spins(monkeypatch):
    def spin(self, client):
        while self.held.sum_bytes >= 0:
            self.has(client)

    machine = Clients()
    machine.begin()
    try:
        monkeypatch.setattr(ConnectionTable, "book", spin)
        with pytest.raises(Spins):
            machine.act([(0, ("head", (b"none", 10, False, 1, False)))], 5)
    finally:
        machine.teardown()
