"""Fifty thousand bodies drawn by chance, put to what answers POST /filter, without a server: nothing is raised, and
each answer is one that kube-scheduler can read. READYGATE_SEED repeats them (`tests/conftest.py`).
"""

import random

from extender.counts import RequestResult
from extender.verbs.dispatch import answer_filter
from tests.contract import mutations
from tests.contract.go_types import read_filter_result
from tests.extender.builders import node, pod
from tests.extender.verbs.test_dispatch import World
from tests.extender.world import PODS

BODIES = 50_000
EXPECTED = {
    RequestResult.ANSWERED,
    RequestResult.EXEMPT,
    RequestResult.MALFORMED,
    RequestResult.UNANSWERABLE,
}


def test_no_body_makes_the_answer_fail(seed: int) -> None:
    world = World()
    world.services.index.replace_nodes([node(name) for name in ("h1", "u1", "m1")])
    world.services.index.replace_pods(PODS, [pod("h1"), pod("u1", Ready="False")])
    world.see()
    chance = random.Random(f"{seed} bodies")
    results = set()
    for number in range(BODIES):
        body = mutations.body(chance)
        try:
            reply = answer_filter(world.services, body)
            results.add(reply.result)
            read_filter_result(reply.body)
        except Exception as e:
            e.add_note(f"body {number} of this seed: {body!r}")
            raise
    assert results <= EXPECTED, results
    assert results >= {RequestResult.ANSWERED, RequestResult.MALFORMED}
