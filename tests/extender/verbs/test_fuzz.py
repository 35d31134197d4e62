"""Fifty thousand bodies drawn by chance, put to what answers each verb, without a server: nothing is raised, and each
answer is one that kube-scheduler can read. READYGATE_SEED repeats them (`tests/conftest.py`).
"""

import json
import random
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

import pytest

from extender.verbs.counts import RequestResult
from extender.verbs.table import VERBS
from tests.contract import mutations
from tests.contract.go_types import (
    read_binding_result,
    read_filter_result,
    read_preemption_result,
    read_priorities,
)
from tests.extender.builders import node, pod
from tests.extender.verbs.test_filter import World
from tests.extender.world import PODS
from tools.kit.scope import draws

BODIES = draws(6_000, 50_000)
EXPECTED = {
    RequestResult.ANSWERED,
    RequestResult.EXEMPT,
    RequestResult.MALFORMED,
    RequestResult.UNANSWERABLE,
}


def read_failure(body: bytes) -> None:
    assert list(json.loads(body)) == ["Error"]


@pytest.mark.parametrize(
    ("verb", "seeds", "read"),
    [
        ("filter", mutations.SEEDS, read_filter_result),
        ("preempt", mutations.PREEMPTIONS, read_preemption_result),
        ("prioritize", mutations.SEEDS, read_priorities),
        ("bind", mutations.SEEDS, read_binding_result),
    ],
)
def test_no_body_makes_the_answer_fail(
    seed: int, verb: str, seeds: Sequence[bytes], read: Callable[[bytes], Any]
) -> None:
    world = World()
    world.services.index.replace_nodes([node(name) for name in ("h1", "u1", "m1")])
    world.services.index.replace_pods(PODS, [pod("h1"), pod("u1", Ready="False")])
    world.see()
    chance = random.Random(f"{seed} bodies of {verb}")
    results = set()
    for number in range(BODIES if verb == "filter" else BODIES // 2):
        body = mutations.body(chance, seeds)
        try:
            reply = VERBS[verb](world.services, body)
            results.add(reply.result)
            shown = (read if reply.status == HTTPStatus.OK or verb == "filter" else read_failure)(reply.body)
            if verb == "preempt" and reply.result is RequestResult.ANSWERED:
                assert set(shown) <= {"h1"}  # none that is closed, and none that was not asked for
        except Exception as e:
            e.add_note(f"body {number} of this seed: {body!r}")
            raise
    assert results <= EXPECTED, results
    assert results >= ({RequestResult.ANSWERED, RequestResult.MALFORMED} if verb != "bind" else set())
