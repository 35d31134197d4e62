"""What the gate leaves out is listed with a reason, and everything listed exists."""

import ast
import subprocess
import sys

import pytest

from tools.proof.selection import LIST, ROOT, Line, in_gate, read

LISTED = read(LIST.read_text())
PARAMETERS = [line for line in LISTED if "[" in line.what]


@pytest.mark.parametrize(
    ("what", "test", "covered"),
    [
        ("tests/plane", "tests/plane/test_a.py::test_b", True),
        ("tests/plane", "tests/planes/test_a.py::test_b", False),
        ("tests/a.py", "tests/a.py::test_b", True),
        ("tests/a.py::test_b", "tests/a.py::test_b", True),
        ("tests/a.py::test_b", "tests/a.py::test_b[x]", True),
        ("tests/a.py::test_b", "tests/a.py::test_bc", False),
        ("tests/a.py::test_b[x]", "tests/a.py::test_b[x]", True),
        ("tests/a.py::test_b[x]", "tests/a.py::test_b[y]", False),
        ("tests/a.py::TestB", "tests/a.py::TestB::test_c", True),
    ],
)
def test_a_line_covers_what_it_names_and_no_more(what: str, test: str, covered: bool) -> None:
    assert covered is Line(what, "dear").covers(test)


def test_the_gate_has_what_no_line_covers() -> None:
    lines = read("# a comment\n\ntests/a.py::test_dear  # takes an hour\n")
    assert [True, False] == in_gate(["tests/a.py::test_cheap", "tests/a.py::test_dear"], lines)


def test_a_line_without_a_reason_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'tests/a.py' has no reason"):
        read("tests/a.py")


@pytest.mark.parametrize("line", LISTED, ids=[line.what for line in LISTED])
def test_each_listed_test_exists(line: Line) -> None:
    path, _, function = line.what.partition("::")
    assert (ROOT / path).exists()
    if function:
        tree = ast.parse((ROOT / path).read_text())
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert set(function.partition("[")[0].split("::")) <= names


def test_each_listed_parameter_is_one_of_its_test() -> None:
    files = sorted({line.what.partition("::")[0] for line in PARAMETERS})
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    tests = set(done.stdout.splitlines())
    assert [] == [line.what for line in PARAMETERS if line.what not in tests], done.stdout[-2000:]


def test_nothing_is_listed_twice_or_under_what_is_listed() -> None:
    assert [] == [line.what for line in LISTED for other in LISTED if line is not other and other.covers(line.what)]
