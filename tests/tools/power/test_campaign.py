"""The campaign: stops at the first catch, proves it without the fault, and goes on where it stopped."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tools.power.checkouts import make_checkout
from tools.power.campaign import REGENERATED, START, Campaign, Outcome, reach_ring_3
from tools.power.choosing import Batch, Choosing
from tools.power.copied import Copy, CopyError
from tools.power.covering import Map
from tools.power.fault import Fault
from tools.power.results import Result, Results

FAULT = Fault("a.py:f:x:1:1", "policy", "a.py", 4, "1", "2", "line 1", (1,))
GATE, WHOLE = "tests/test_a.py::test_gate", "tests/test_a.py::test_whole"
CLEAN, PLANTED = "A = 1\n", "A = 2\n"


class FakeRunner:
    """Answers with the outcome of each test: does it fail in this text of a.py?"""

    def __init__(self, copy: Copy, fails: Callable[[str, str], bool]) -> None:
        self.copy = copy
        self.fails = fails
        self.stopping = False
        self.ran: list[tuple[str, str]] = []
        self.regenerates: Callable[[str], bool] = lambda _text: True

    def run(self, batch: Batch, without: Iterable[str] = (), only: str = "") -> Outcome:
        text = self.copy.read("a.py")
        for test in [only] if only else batch.tests:
            if test not in without:
                self.ran.append((test, text))
                if self.fails(test, text):
                    return Outcome(test, timeout="hang" in test, tests=1)
        return Outcome(tests=len(batch.tests))

    def regenerate(self) -> bool:
        return self.regenerates(self.copy.read("a.py"))


class Chosen(Choosing):
    def __init__(self, copy: Copy, tests: dict[str, tuple[str, ...]]) -> None:
        super().__init__(copy, Map())
        self.tests = tests

    def batches(self, _fault: Fault, rings: Iterable[int]) -> list[Batch]:
        wanted = [name for name in self.tests if int(name[0]) in rings]
        return [Batch(int(n[0]), n[1] == "g", self.tests[n], (), 1.0, f"{n}:{self.tests[n]}") for n in wanted]

    def in_gate(self, test: str) -> bool:
        return test != WHOLE


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    checkout = make_checkout(tmp_path / "checkout", {"a.py": CLEAN, "tests/test_a.py": ""})
    made = Copy(checkout, tmp_path / "copy")
    made.renew()
    return made


def campaign(
    copy: Copy, fails: Callable[[str, str], bool], **tests: tuple[str, ...]
) -> tuple[Campaign, FakeRunner, Results]:
    runner, results = FakeRunner(copy, fails), Results(copy.folder.parent / "results.jsonl")
    chosen = Chosen(copy, {name.removeprefix("ring"): those for name, those in tests.items()})
    return Campaign(copy, chosen, runner, results, lambda _text: None), runner, results


def of_fault(_test: str, text: str) -> bool:
    return text == PLANTED


def test_a_test_that_fails_with_the_fault_and_passes_without_it_is_a_catch(copy: Copy) -> None:
    made, runner, _ = campaign(copy, of_fault, ring0g=(GATE,), ring1g=("tests/test_a.py::test_later",))
    row = made.run(FAULT, (0, 1))
    assert row is not None
    assert (row.outcome, row.test, row.ring, row.gate) == ("caught", GATE, 0, True)
    assert runner.ran == [(GATE, PLANTED), (GATE, CLEAN)]
    assert copy.read("a.py") == CLEAN


def test_a_test_that_fails_without_the_fault_too_is_left_out(copy: Copy) -> None:
    broken = "tests/test_a.py::test_broken"
    made, _, _ = campaign(copy, lambda test, text: test == broken or text == PLANTED, ring0g=(broken, GATE))
    row = made.run(FAULT, (0,))
    assert row is not None
    assert (row.test, row.unreliable) == (GATE, [broken])


def test_a_test_that_hangs_is_a_catch_by_timeout(copy: Copy) -> None:
    made, _, _ = campaign(copy, of_fault, ring0g=("tests/test_a.py::test_hang",))
    row = made.run(FAULT, (0,))
    assert row is not None
    assert (row.outcome, row.is_caught) == ("timeout", True)


@pytest.mark.parametrize("failed", [START, "tests/test_a.py (collection)"])
def test_what_hangs_or_breaks_before_the_first_test_without_the_fault_too_is_no_catch(copy: Copy, failed: str) -> None:
    made, _, _ = campaign(copy, lambda *_: True, ring0g=(failed,))
    row = made.run(FAULT, (0,))
    assert row is not None
    assert (row.outcome, row.unreliable) == ("uncaught", [failed])


def test_what_fails_without_a_fault_again_and_again_ends_the_campaign(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, runner, results = campaign(copy, of_fault, ring0g=(GATE,))
    monkeypatch.setattr(runner, "run", lambda *_args, **_more: Outcome(START))
    with pytest.raises(CopyError, match=f"{START} fails in .* without a fault, too"):
        made.run(FAULT, (0,))
    assert (results.rows, copy.read("a.py")) == ({}, CLEAN)


def test_a_chart_of_which_nothing_can_be_generated_is_a_catch(copy: Copy) -> None:
    made, runner, _ = campaign(copy, of_fault, ring0g=(GATE,))
    runner.regenerates = lambda text: text == CLEAN
    row = made.run(replace(FAULT, regenerate=True), (0,))
    assert row is not None
    assert (row.outcome, row.test, runner.ran) == ("caught", REGENERATED, [])


def test_where_nothing_can_be_generated_without_a_fault_either_the_campaign_ends(copy: Copy) -> None:
    made, runner, results = campaign(copy, of_fault, ring0g=(GATE,))
    runner.regenerates = lambda _text: False
    with pytest.raises(CopyError, match=r"`make manifests` fails in .* without a fault, too"):
        made.run(replace(FAULT, regenerate=True), (0,))
    assert (results.rows, copy.read("a.py")) == ({}, CLEAN)


def test_the_whole_proof_is_tried_when_the_gate_catches_nothing(copy: Copy) -> None:
    fails = lambda test, text: test == WHOLE and text == PLANTED  # noqa: E731
    made, _, _ = campaign(copy, fails, ring0g=(GATE,), ring1g=(GATE,), ring0w=(WHOLE,))
    row = made.run(FAULT, (0, 1))
    assert row is not None
    assert (row.test, row.ring, row.gate, sorted(row.tried)) == (WHOLE, 0, False, ["0g", "1g"])


def test_a_fault_that_no_test_covers_is_uncovered(copy: Copy) -> None:
    made, _, _ = campaign(copy, of_fault)
    row = made.run(FAULT, (0,))
    assert row is not None
    assert row.outcome == "uncovered"


def test_a_result_holds_while_nothing_has_changed(copy: Copy) -> None:
    made, _, _ = campaign(copy, of_fault, ring0g=(GATE,))
    assert not made.holds(FAULT, (0,))
    made.run(FAULT, (0,))
    again, _, _ = campaign(copy, of_fault, ring0g=(GATE,), ring1g=(GATE,))
    assert again.holds(FAULT, (0, 1))


def test_a_fault_that_nothing_caught_runs_what_is_new_alone(copy: Copy) -> None:
    made, _, _ = campaign(copy, lambda *_: False, ring0g=(GATE,))
    made.run(FAULT, (0,))
    assert made.holds(FAULT, (0,))
    again, runner, _ = campaign(copy, lambda *_: False, ring0g=(GATE,), ring1g=("tests/test_a.py::test_new",))
    assert not again.holds(FAULT, (0, 1))
    row = again.run(FAULT, (0, 1))
    assert runner.ran == [("tests/test_a.py::test_new", PLANTED)]
    assert row is not None
    assert sorted(row.tried) == ["0g", "1g"]


def test_a_catch_is_run_again_when_the_gate_no_longer_has_its_test(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _, _ = campaign(copy, of_fault, ring0g=(GATE,))
    made.run(FAULT, (0,))
    monkeypatch.setattr(Chosen, "in_gate", lambda _self, _test: False)
    again, _, _ = campaign(copy, of_fault, ring0w=(GATE,))
    assert not again.holds(FAULT, (0,))


def test_a_catch_by_a_file_that_only_the_whole_proof_has_holds(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Chosen, "in_gate", lambda _self, test: test != "tests/test_a.py")
    made, _, _ = campaign(copy, of_fault, ring0w=("tests/test_a.py (collection)",))
    row = made.run(FAULT, (0,))
    assert row is not None
    assert (row.is_caught, row.gate) == (True, False)
    assert made.holds(FAULT, (0,))


def test_a_changed_file_makes_its_faults_run_again(copy: Copy) -> None:
    made, _, _ = campaign(copy, of_fault, ring0g=(GATE,))
    made.run(FAULT, (0,))
    (copy.checkout / "a.py").write_text("A = 1  # as before\n")
    copy.renew()
    again, _, _ = campaign(copy, of_fault, ring0g=(GATE,))
    assert not again.holds(FAULT, (0,))


def test_a_run_that_was_stopped_records_nothing_and_restores_the_copy(copy: Copy) -> None:
    made, runner, results = campaign(copy, of_fault, ring0g=(GATE,))
    runner.fails = lambda _test, _text: bool(setattr(runner, "stopping", True)) or True
    assert made.run(FAULT, (0,)) is None
    assert (results.rows, copy.read("a.py")) == ({}, CLEAN)


def test_thirty_faults_reach_ring_3_those_of_playbooks_chart_and_units_first(copy: Copy) -> None:
    parts = ["policy"] * 40 + ["units"] * 5
    faults = [Fault(f"{n}", part, "a.py", 4, "1", "2", "") for n, part in enumerate(parts)]
    reached = reach_ring_3(faults, Results(copy.folder.parent / "none"), lambda identity: identity)
    assert len(reached) == 30
    assert {fault.part for fault in reached[:5]} == {"units"}


def test_a_later_run_takes_no_other_faults_to_ring_3_in_the_place_of_those_that_it_has_caught(copy: Copy) -> None:
    faults = [Fault(f"{n:02}", "units", "a.py", 4, "1", "2", "") for n in range(40)]
    results = Results(copy.folder.parent / "results.jsonl")
    reached = reach_ring_3(faults, results, lambda identity: identity)
    for fault in reached[:10]:
        results.add(Result(fault.id, "units", "", 1, "caught", "tests/hosts/test_a.py::test_b", 3, gate=True))
    results.add(Result(reached[10].id, "units", "", 1, "caught", "tests/test_a.py::test_b", 0, gate=True))
    again = reach_ring_3(faults, results, lambda identity: identity)
    assert [*reached[:10], *reached[11:], faults[30]] == again
