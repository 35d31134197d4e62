"""The faults that are made of Python: valid, of another meaning, and none where no test could see it."""

import ast

import pytest

from tests.tools.power.checkouts import ROOT
from tools.power.fault import Fault
from tools.power.mutator import Mutator

FUNCTION = "def f(a, b):\n    {}\n"


def faults(text: str) -> list[Fault]:
    mutator = Mutator("part", "some/file.py", text)
    return [fault for mutation in mutator.places() if (fault := mutator.fault(mutation)) is not None]


def changes(text: str, operator: str) -> list[str]:
    return [fault.planted_in(text) for fault in faults(text) if fault.id.split(":")[2] == operator]


@pytest.mark.parametrize(
    ("operator", "was", "becomes"),
    [
        ("comparison", "return a < b", "return a <= b"),
        ("comparison", "return a not  in b", "return a in b"),
        ("comparison", "return a is b", "return a is not b"),
        ("comparison", "return (a) == (b)", "return (a) != (b)"),
        ("and/or", "return a and b", "return a or b"),
        ("negated condition", "return 1 if a else b", "return 1 if not (a) else b"),
        ("deleted not", "return not a", "return (a)"),
        ("off by one", "return a + 1", "return a + 2"),
        ("unit", "return a * 1000", "return a * 1.0"),
        ("dropped statement", "a.append(b)", "pass"),
        ("dropped statement", "a.b = 1", "pass"),
        ("swapped arguments", "return g(a, b)", "return g(b, a)"),
        ("swallowed exception", "raise ValueError", "pass"),
        ("returned value", "return True", "return False"),
        ("boolean", "return g(a=True)", "return g(a=False)"),
        ("twin function", "return min(a, b)", "return max(a, b)"),
        ("arithmetic", "return a - b", "return a + b"),
    ],
)
def test_an_operator_changes_one_piece(operator: str, was: str, becomes: str) -> None:
    if operator == "boolean":  # the value of a `return` is another operator's
        was, becomes = was.replace("return ", "c = "), becomes.replace("return ", "c = ")
    assert FUNCTION.format(becomes) in changes(FUNCTION.format(was), operator)


def test_an_early_return_leaves_out_the_last_statement() -> None:
    text = "def f(a) -> None:\n    a.begin()\n    a.end()\n"
    assert changes(text, "early return") == ["def f(a) -> None:\n    a.begin()\n    return\n    a.end()\n"]


def test_a_handler_is_narrowed_to_its_first_exception() -> None:
    text = "def f():\n    try:\n        g()\n    except (OSError, ValueError):\n        pass\n"
    assert changes(text, "narrowed handler") == [text.replace("(OSError, ValueError)", "OSError")]


def test_a_duration_is_divided_by_a_thousand() -> None:
    assert changes("LIMIT_S = 30.0\n", "unit") == ["LIMIT_S = 0.03\n"]


@pytest.mark.parametrize(
    "line",
    [
        'log.info("one", extra={"count": 1})',
        '"""What 1 < 2 is."""',
        "c: Literal[1, 2] = a",
        'raise ValueError("more than", 1 + 1) from None',
        'return f"{a < b}"',
    ],
    ids=["a log line", "a docstring", "an annotation", "the text of an error", "an f-string"],
)
def test_what_no_test_could_see_is_not_changed(line: str) -> None:
    operators = {fault.id.split(":")[2] for fault in faults(FUNCTION.format(line))}
    assert operators <= {"swallowed exception", "negated condition"}


def test_repr_is_not_changed() -> None:
    assert faults("class A:\n    def __repr__(self):\n        return str(1 + 1)\n") == []


@pytest.mark.parametrize("file", ["extender/policy/storm.py", "kube/lines.py"])
def test_each_fault_is_valid_and_means_another_thing(file: str) -> None:
    text = (ROOT / file).read_text()
    found = faults(text)
    assert len(found) > 10
    before = ast.dump(ast.parse(text))
    assert [fault.id for fault in found if ast.dump(ast.parse(fault.planted_in(text))) == before] == []


def test_ids_are_unique_and_survive_a_line_above() -> None:
    text = FUNCTION.format("return a < 1 or b < 1")
    ids = [fault.id for fault in faults(text)]
    assert len(ids) == len(set(ids)) > 4
    assert ids == [fault.id for fault in faults(f"import os\n\n\n{text}")]


def test_the_lines_of_a_constant_are_those_that_use_it() -> None:
    text = "LIMIT = 5\n\n\ndef f(a):\n    b = 1\n    return a > LIMIT\n"
    assert {fault.lines for fault in faults(text) if fault.old == "5"} == {(6,)}


def test_the_lines_of_a_condition_are_those_of_its_head() -> None:
    text = "def f(a, b):\n    if (\n        a\n        < b\n    ):\n        return 1\n"
    assert {fault.lines for fault in faults(text) if fault.old == "<"} == {(2, 3, 4, 5)}
