"""Each mended mistake of upstream's is switched on in the comparison, and shown."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import pytest

from agent.wire.semantics import Semantics
from tools.differential import fixes
from tools.differential.compare import agents_answer, quiet, semantics_of
from tools.differential.fixes import FIXES, Fix
from tools.differential.kubelet import GATES
from tools.differential.target import Answers, History
from tools.differential.targets import TARGETS


def test_each_fix_of_the_agents_has_its_run() -> None:
    mended = {field.name for field in fields(Semantics) if field.name.startswith("fix_")}
    assert mended == {fix.name for fix in FIXES}


def test_each_is_off_in_the_comparison_and_on_in_the_agent() -> None:
    for fix in FIXES:
        assert (False, True) == (getattr(semantics_of(dict(GATES[0])), fix.name), getattr(Semantics(), fix.name))


SOON = [fix for fix in FIXES if fix.name != "fix_readiness_without_sidecars"]  # which one history of 1,000s shows


class Upstream:
    """Answers what the agent does without the fix, and with it where it is mended. `gates`: it was asked under them."""

    def __init__(self, *, can_be_mended: bool = True) -> None:
        self._can_be_mended = can_be_mended
        self.gates: list[dict[str, bool]] = []
        self._answers: list[Answers] = []

    def ask(self, name: str, gates: dict[str, bool], histories: list[History], mended: Sequence[str]) -> None:
        self.gates.append(gates)
        target = next(t for t in TARGETS if t.name == name)
        on: dict[str, Any] = dict.fromkeys(mended if self._can_be_mended else (), True)
        semantics = replace(semantics_of(gates), **on)
        with quiet():
            self._answers = [agents_answer(target, history, semantics) for history in histories]

    def answers(self) -> list[Answers]:
        return self._answers


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories, so that all gates are come upon, but no more than show the difference."""
    monkeypatch.setattr(fixes, "BATCH", 20)
    monkeypatch.setattr(fixes, "HISTORIES", 20 * len(GATES))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("fix", SOON, ids=lambda fix: fix.name)
def test_a_fix_shows_under_all_gates_and_where_it_may_alone(fix: Fix) -> None:
    upstream: Any = Upstream()
    found = fixes.shown(fix, upstream, seed=1)
    assert (True, [], True) == (found.differing > 0, found.strange, all(dict(g) in upstream.gates for g in GATES))


@pytest.mark.usefixtures("few")
def test_what_differs_for_another_cause_is_told() -> None:
    nothing = replace(FIXES[0], concerns=lambda _history: False)
    upstream: Any = Upstream()
    found = fixes.shown(nothing, upstream, seed=1)
    assert 0 < found.differing == len(found.strange)


@pytest.mark.usefixtures("few")
def test_an_answer_that_the_mended_kubelet_does_not_give_is_told_be_it_of_a_history_that_may_differ() -> None:
    upstream: Any = Upstream(can_be_mended=False)
    found = fixes.shown(FIXES[0], upstream, seed=1)
    assert 0 < found.differing == len(found.strange)
