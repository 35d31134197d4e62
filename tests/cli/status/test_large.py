"""`readygate status` of the largest cluster: its cost grows in proportion to the nodes."""

import time

import pytest

from cli.__main__ import main
from tests.cli.served import HEAD, OPEN, serving
from tests.cli.served import encoded as json_of

GATES = {**HEAD, "gates": [{"gate": "health", "nodes": 1, "open": 1}], "orders": [], "faults": []}


def answers(count, closed):
    """So many nodes, of which every `closed`-th is not open."""
    decision = {"gate": "health", "verdict": "", "pod": "readygate-system/agent-1"}
    shut = {"open": False, "reason": "node(s) with a health pod that is not Ready", "verdict": "x"}
    nodes = []
    for number in range(count):
        bad = shut if number % closed == 0 else {}
        one = {**OPEN, "node": f"node-{number:05}", **{key: bad[key] for key in ("open", "reason") if bad}}
        nodes.append({**one, "gates": [decision | bad]})
    return {"nodes": json_of({**HEAD, "nodes": nodes}), "gates": json_of(GATES)}


def took_s(said, capsys):
    with serving(lambda target, _: (200, said[target.partition("/api/v1/")[2].partition("?")[0]])) as url:
        began = time.process_time()
        assert main(["status", "--server", url]) == 1
        took = time.process_time() - began
    assert "nodes open" in capsys.readouterr().out
    return took


@pytest.mark.parametrize("closed", [50, 1], ids=["few are closed", "all are closed"])
def test_ten_times_the_nodes_cost_ten_times_as_much_at_most(capsys, closed):
    few, many = answers(500, closed), answers(5000, closed)
    took_s(few, capsys)
    rounds = [(took_s(few, capsys), took_s(many, capsys)) for _ in range(3)]
    assert min(big for _, big in rounds) < 20 * min(small for small, _ in rounds)
