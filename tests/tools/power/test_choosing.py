"""Which tests run for a fault: those that cover its lines, the cheapest ring first, the gate's before all others."""

from pathlib import Path

import pytest

from tests.tools.power.checkouts import make_checkout
from tools.power.choosing import Choosing
from tools.power.contexts import context_of
from tools.power.copied import Copy
from tools.power.covering import Map, MeasuredTest
from tools.power.fault import Fault

FILE = "extender/policy/caps.py"
UNIT, SLOW = "tests/extender/policy/test_caps.py::test_a", "tests/extender/web/test_api.py::test_b"
SCRIPTED, PLANE = "tests/scripted/test_extender_life.py::test_c", "tests/plane/test_gates.py::test_d"
DEAR = "tests/extender/policy/test_dear.py::test_e"
SECONDS = {UNIT: 0.5, SLOW: 0.1, SCRIPTED: 0.01, PLANE: 3.0, DEAR: 9.0}
FAULT = Fault("id", "policy", FILE, 0, "A", "B", "a mistake", (7,))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    tests = {test.partition("::")[0]: "" for test in SECONDS}
    charts = {"tests/charts/test_chart.py": "", "tests/charts/rendering.py": "", "tests/hosts/chart/test_forms.py": ""}
    listed = {"tests/whole_only.txt": "tests/extender/policy/test_dear.py  # dear\n"}
    folder = tmp_path_factory.mktemp("choosing") / "checkout"
    return Copy(folder=make_checkout(folder, {FILE: "", **tests, **charts, **listed}))


def covered(copy: Copy, *, blobs: dict[str, str] | None = None) -> Map:
    tests = [MeasuredTest(test, s, frozenset([context_of(test)])) for test, s in SECONDS.items()]
    found = Map(tests, copy.blobs() | (blobs or {}))
    found._contexts_at = lambda _file: {7: {context_of(test) for test in SECONDS}, 9: {""}}
    return found


def test_the_gate_comes_first_and_in_it_the_cheapest_ring(copy: Copy) -> None:
    found = Choosing(copy, covered(copy)).batches(FAULT, (2, 1, 0))
    assert [(batch.name, batch.tests) for batch in found] == [
        ("0g", (UNIT, SLOW)),
        ("1g", (SCRIPTED,)),
        ("2g", (PLANE,)),
        ("0w", (DEAR,)),
    ]


def test_a_constant_has_the_tests_of_the_lines_that_use_it_elsewhere(tmp_path: Path) -> None:
    files = {"extender/limits.py": "LIMIT = 5\n", FILE: "from extender.limits import LIMIT\n\nprint(LIMIT)\n"}
    copy = Copy(folder=make_checkout(tmp_path / "checkout", files))
    found = Map([MeasuredTest(UNIT, 0.5, frozenset([context_of(UNIT)]))], copy.blobs())
    found._contexts_at = lambda file: {3: {context_of(UNIT)}} if file == FILE else {}
    fault = Fault("id", "policy", "extender/limits.py", 8, "5", "6", "a mistake", (), constant="LIMIT")
    assert [batch.tests for batch in Choosing(copy, found).batches(fault, (0,))] == [(UNIT,)]


def test_only_the_rings_asked_for_are_run(copy: Copy) -> None:
    assert [batch.name for batch in Choosing(copy, covered(copy)).batches(FAULT, (1,))] == ["1g"]


def test_a_line_that_no_test_runs_has_the_tests_of_its_module(copy: Copy) -> None:
    fault = Fault("id", "policy", FILE, 0, "A", "B", "a mistake", (9,))
    found = Choosing(copy, covered(copy)).batches(fault, (0, 1))
    assert [(batch.tests, batch.files) for batch in found] == [((), (UNIT.partition("::")[0],))]


def test_tests_that_have_changed_since_they_were_measured_run_as_whole_files(copy: Copy) -> None:
    path = SLOW.partition("::")[0]
    found = Choosing(copy, covered(copy, blobs={path: "another"})).batches(FAULT, (0,))
    assert found[0].files == (path,)


def test_a_test_file_that_is_newer_than_the_map_runs_with_its_neighbours(copy: Copy) -> None:
    found = covered(copy)
    path = UNIT.partition("::")[0]
    del found.blobs[path]
    assert path in Choosing(copy, found).batches(FAULT, (0,))[0].files


def test_a_file_that_is_not_python_has_the_tests_it_names(copy: Copy) -> None:
    fault = Fault("id", "chart", "values.yaml", 0, "A", "B", "a mistake", (), ("tests/charts", "tests/hosts/chart"))
    found = Choosing(copy, covered(copy)).batches(fault, (0, 3))
    assert [(batch.name, batch.files) for batch in found] == [
        ("0g", ("tests/charts/test_chart.py",)),
        ("3g", ("tests/hosts/chart/test_forms.py",)),
    ]


def test_a_changed_test_changes_the_key_of_its_batch(copy: Copy) -> None:
    key = Choosing(copy, covered(copy)).batches(FAULT, (0,))[0].key
    assert key == Choosing(copy, covered(copy)).batches(FAULT, (0,))[0].key
    other = Choosing(copy, covered(copy))
    other.blobs = other.blobs | {UNIT.partition("::")[0]: "another"}
    assert key != other.batches(FAULT, (0,))[0].key
