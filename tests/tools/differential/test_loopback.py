"""What of the network a history meets: nobody outside is asked for anything."""

import json
import re
import socket
from random import Random

import pytest

from agent.probe import http, names
from tools.differential import loopback
from tools.differential.compare import agents_answer, semantics_of
from tools.differential.kubelet import GATES
from tools.differential.targets import handlers
from tools.differential.targets.http import HttpTarget


@pytest.mark.parametrize("host", ["127.1", "0x7f.1", "2130706433", "localhost"])
def test_what_the_c_library_knows_by_itself_is_found_as_on_any_machine(host: str) -> None:
    """Else an agent that takes 127.1 for an address would be taken for one that does not."""
    assert "127.0.0.1" in {address[0] for *_, address in handlers._looked_up(host)}


@pytest.mark.parametrize(
    ("family", "address", "place"), [(socket.AF_INET6, "::1", 1), (socket.AF_INET, "127.0.0.1", 2)]
)
def test_nobody_else_answers_at_a_port_that_is_of_the_other_family_alone(family, address: str, place: int) -> None:
    """A process beside us had a server there once: what the kubelet reached was gone when the agent asked."""
    with pytest.raises(OSError, match="in use"):
        socket.create_server((address, int(loopback.ports()[place])), family=family)


@pytest.mark.parametrize("host", ["nobody.invalid", "a b", "127.0.0.1:80"])
def test_a_name_is_not_found(host: str) -> None:
    with pytest.raises(OSError, match="not known"):
        handlers._looked_up(host)


def test_a_history_leaves_the_network_as_it_found_it() -> None:
    """One process plays several targets: probes of `handlers` shall not meet the network in memory of `http`."""
    before = http.connect, names.look_up
    random = Random(1)
    for target in (HttpTarget(), handlers.HandlersTarget()):
        for _ in range(20):
            agents_answer(target, target.draw(random), semantics_of(dict(GATES[0])))
    assert before == (http.connect, names.look_up)


def test_no_drawn_port_has_a_digit_before_the_number_of_a_server_but_zero():
    """Else 359 and 35935 give 35935935, in which the number of the server would be found three digits too early."""
    random = Random(1)
    drawn = [json.dumps(handlers.HandlersTarget().draw(random), ensure_ascii=False) for _ in range(20_000)]
    ambiguous = {found for one in drawn for found in re.findall(rf"[1-9][0-9]*{handlers.BOTH}", one)}
    assert ambiguous == set()
