"""The catalogue: at least 200 faults over all parts, each of which can be planted in this checkout."""

import random
from collections import Counter

import pytest

from tests.tools.power.checkouts import ROOT
from tools.power import catalogue
from tools.power.by_hand import ByHand
from tools.power.copied import Copy
from tools.power.equivalent import EQUIVALENT
from tools.power.fault import FaultError
from tools.power.mutator import Mutator

CHECKOUT = Copy(folder=ROOT)


def test_the_catalogue_has_150_faults_of_python_and_50_by_hand_at_least() -> None:
    wanted = sum(count for _, count in catalogue.PYTHON_PARTS.values())
    assert (wanted >= 150, len(catalogue.HANDS) >= 50) == (True, True)
    assert {row.part for row in catalogue.HANDS} == {"playbooks", "chart", "units", "policies", "image"}


def test_each_fault_by_hand_changes_a_text_that_is_there_once() -> None:
    found = catalogue.of_hands(CHECKOUT)
    assert len({fault.id for fault in found}) == len(catalogue.HANDS)


@pytest.mark.parametrize("row", catalogue.HANDS, ids=lambda row: f"{row.file}: {row.what}")
def test_the_tests_of_a_fault_by_hand_exist(row: ByHand) -> None:
    assert [path for path in row.tests if not (ROOT / path).exists()] == []


def test_a_fault_whose_text_is_gone_is_an_error_that_names_the_file() -> None:
    row = ByHand("chart", "README.md", "no such text in it", "x", "a mistake", ("tests/charts",))
    with pytest.raises(FaultError, match=r"README.md holds 'no such text in it' 0 times"):
        catalogue.of_hands(CHECKOUT, [row])


@pytest.mark.parametrize("part", ["serve", "verbs"])
def test_a_part_has_as_many_faults_as_are_wanted_with_none_twice_in_a_function(part: str) -> None:
    found = catalogue.of_python(CHECKOUT, [part])
    assert len(found) == catalogue.PYTHON_PARTS[part][1]
    functions = Counter(tuple(fault.id.split(":")[:2]) for fault in found)
    assert max(functions.values()) == 1


def test_the_choice_does_not_depend_on_the_order_of_the_files() -> None:
    file = "extender/policy/caps.py"
    mutator = Mutator("policy", file, (ROOT / file).read_text())
    places = mutator.places()
    mixed = random.Random(1).sample(places, len(places))
    assert catalogue.chosen(places, 5, mutator.fault) == catalogue.chosen(mixed, 5, mutator.fault)


@pytest.mark.parametrize("identity", EQUIVALENT)
def test_what_is_named_as_no_fault_can_be_planted(identity: str) -> None:
    file = identity.partition(":")[0]
    assert identity in {mutation.id for mutation in Mutator("part", file, (ROOT / file).read_text()).places()}


def test_what_is_named_as_no_fault_is_not_in_the_catalogue() -> None:
    file = "extender/policy/caps.py"
    mutator = Mutator("policy", file, (ROOT / file).read_text())
    first = catalogue.chosen(mutator.places(), 3, mutator.fault)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(EQUIVALENT, first[0].id, "the same")
        assert first[0] not in catalogue.chosen(mutator.places(), 3, mutator.fault)


def test_the_halves_are_about_equal() -> None:
    halves = Counter(catalogue.half(fault) for fault in catalogue.of_hands(CHECKOUT))
    assert min(halves[1], halves[2]) > len(catalogue.HANDS) * 0.35
