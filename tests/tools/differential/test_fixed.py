"""The fixed histories without Go: the agent answers what the kubelet did when it was asked."""

from copy import deepcopy

import pytest

from tools.differential.compare import agents_answer, quiet, semantics_of
from tools.differential.fixed import CASES, read_answers
from tools.differential.kubelet import GATES
from tools.differential.targets import TARGETS

OF = {target.name: target for target in TARGETS}
PLAYED = [(target, why) for target, cases in CASES.items() for why in cases]


@pytest.mark.parametrize(("target", "why"), PLAYED, ids=[f"{target}: {why}" for target, why in PLAYED])
def test_the_agent_answers_as_the_kubelet(target: str, why: str) -> None:
    with quiet():
        ours = agents_answer(OF[target], deepcopy(CASES[target][why]), semantics_of(dict(GATES[0])))
    assert OF[target].told(read_answers(target)[why]) == OF[target].told(ours)


@pytest.mark.parametrize("target", CASES)
def test_each_answer_that_was_written_down_is_of_a_history(target: str) -> None:
    assert list(CASES[target]) == list(read_answers(target)), "python -m tools.differential --record"


def test_no_fixed_history_is_none() -> None:
    broken = [
        (target, why)
        for target in CASES
        for why, answer in read_answers(target).items()
        if isinstance(answer, dict) and "error" in answer
    ]
    assert [] == broken
