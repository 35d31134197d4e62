"""A port that is given is nobody else's, though its server listens later or never."""

import subprocess
import sys

import pytest

from tools.kit import ports
from tools.kit.programs import CHECKOUT, python_environ

# Of two ports alone, so that it is by no chance.
OF_TWO = "from tools.kit import ports; ports._FIRST, ports._LAST = {first}, {first} + 1; print(ports.free_port())"


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> int:
    """The first of two that are free and next to one another, the only ones that are given."""
    while not ports.may_listen((first := ports.free_port()) + 1) or first + 1 in ports._given:
        pass
    ports._given.pop(first).close()
    monkeypatch.setattr(ports, "_FIRST", first)
    monkeypatch.setattr(ports, "_LAST", first + 1)
    return first


def test_what_one_process_is_given_no_other_one_is_while_it_lives(two: int) -> None:
    ours = ports.free_port()
    asked = [sys.executable, "-c", OF_TWO.format(first=two)]
    theirs = [
        int(subprocess.run(asked, cwd=CHECKOUT, env=python_environ(), stdout=subprocess.PIPE, check=True).stdout)
        for _ in range(3)  # each of them has ended when the next one asks
    ]
    assert [{two, two + 1} - {ours}] * 3 == [{port} for port in theirs]


def test_none_is_given_twice(two: int) -> None:
    assert [two, two + 1] == sorted([ports.free_port(), ports.free_port()])


MANY = "from tools.kit import ports; print(*(ports.free_port() for _ in range(50)), flush=True); input()"


def test_processes_that_ask_at_the_same_time_share_no_port() -> None:
    """All of them live, from whichever checkout they are: the names are the machine's."""
    asked = [
        subprocess.Popen(
            [sys.executable, "-c", MANY],
            cwd=CHECKOUT,
            env=python_environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    given = [int(port) for one in asked for port in one.stdout.readline().split()]
    for one in asked:
        one.communicate(b"\n")
    assert 200 == len(given) == len(set(given))
