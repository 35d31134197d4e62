"""Histories that an error has told from the kubelet, each as small as it could be made, with what the kubelet answers:
the agent still answers the same. Needs no Go. Kept under the gates that they differed under."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tools.differential.compare import agents_answer, quiet, semantics_of
from tools.differential.targets import TARGETS

KEPT = Path(__file__).resolve().parents[3] / "tools" / "differential" / "kept"
CASES = [
    (target, case)
    for target in TARGETS
    for path in KEPT.glob(f"{target.name}.json")
    for case in msgspec.json.decode(path.read_bytes())
]


@pytest.mark.parametrize(("target", "case"), CASES, ids=[f"{t.name}: {case['why']}" for t, case in CASES])
def test_the_agent_answers_what_the_kubelet_did(target: Any, case: Any) -> None:
    with quiet():
        ours = agents_answer(target, deepcopy(case["history"]), semantics_of(case["gates"]))
    assert target.told(deepcopy(case["kubelet"])) == target.told(ours)
