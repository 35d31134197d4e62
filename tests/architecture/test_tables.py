"""A case that the code or a test names by its row, as W14 or X54, stands in a table of docs/, once and truly."""

import re
from collections import Counter
from pathlib import Path

import pytest

from agent.kubelet.prober import decide
from tests.agent.kubelet.status import test_phase
from tests.architecture import parity
from tests.architecture.parity import ids

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("docs/kubelet-parity.md", "docs/extender-contract.md")

# What the list that the rows are from calls otherwise: PLEG, differences of old, quirks, the API server's validation.
OTHERWISE = [
    f"{prefix}{number}"
    for prefix, numbers in (
        ("L", range(1, 53)),
        ("C", range(1, 28)),
        ("Q", range(1, 10)),
        ("G", [8]),
        ("P", range(26, 29)),
        ("R", [12]),
        ("PV", range(1, 29)),
        ("N", [*range(28, 32), *range(69, 91)]),
    )
    for number in numbers
]


def rows() -> list[tuple[str, str]]:
    """(id, line) of each row of the documents."""
    return [row for document in DOCUMENTS for row in parity.rows(ROOT / document)]


@pytest.fixture(scope="module")
def mentioned() -> dict[str, list[str]]:
    """By id: the files that mention it, wherever they do."""
    found: dict[str, list[str]] = {}
    for name, source in parity.sources().items():
        for row in parity.names_rows(source, docstrings=True):
            found.setdefault(row, []).append(name)
    return found


def test_each_row_that_code_or_tests_name_is_in_a_table(mentioned: dict[str, list[str]]) -> None:
    known = {row for row, _ in rows()}
    assert {row: files for row, files in mentioned.items() if row not in known} == {}, f"add them to one of {DOCUMENTS}"


def test_no_row_stands_twice() -> None:
    assert [row for row, count in Counter(row for row, _ in rows()).items() if count > 1] == []


def test_a_row_is_named_by_a_test_or_says_that_none_does() -> None:
    unnamed = [row for row, line in rows() if parity.state(row, line) == "unheld"]
    assert unnamed == [], "name the row in its test (a docstring of a file is none), or write *Not covered* into it"


def test_the_document_says_which_tests_hold_which_row() -> None:
    text = parity.DOCUMENT.read_text()
    assert parity.with_index(text) == text, "make manifests"


@pytest.mark.parametrize(
    ("source", "docstrings", "expected"),
    [
        pytest.param('"""Rows W1-W3."""', False, set(), id="what a file says of many is no test of one"),
        pytest.param('"""Rows W1-W3."""', True, {"W1", "W2", "W3"}, id="but where targets say what they compare"),
        pytest.param('class T:\n    """Rows W1."""', False, set(), id="nor is what a class says"),
        pytest.param('def test_w4_w5_so():\n    """W6."""', False, {"W4", "W5", "W6"}, id="names and words of a test"),
        pytest.param('CASES = ["W7: so"]  # W8', False, {"W7", "W8"}, id="ids and comments"),
        pytest.param('SAID = "Mounting V5 Filesystem"', False, set(), id="no version of a file system"),
    ],
)
def test_what_names_a_row(source: str, docstrings: bool, expected: set[str]) -> None:
    assert expected == parity.names_rows(source, docstrings=docstrings)


def test_a_row_that_a_test_names_is_not_called_open(mentioned: dict[str, list[str]]) -> None:
    assert {
        row: mentioned[row] for row, line in rows() if any(w in line for w in parity.OPEN) and row in mentioned
    } == {}


def test_each_id_of_the_first_list_has_a_row_or_a_reason() -> None:
    text = (ROOT / DOCUMENTS[0]).read_text().partition("\n## Ids of the first list\n")[2].partition("\n## ")[0]
    table = re.findall(r"^\| `(.+)` \| (.+) \|$", text, re.MULTILINE)
    assert sorted(OTHERWISE) == sorted(row for told, _ in table for row in ids(told))
    known = {row for row, _ in rows()}
    without = [told for told, here in table if not here.startswith("none: ") and not known & set(ids(here))]
    assert without == [], "name a row that there is, or say why none"
    assert {row for _, here in table for row in ids(here)} - known - set(OTHERWISE) == set()


def test_the_rows_of_doprobe_are_the_same_in_the_docstring_and_in_the_document() -> None:
    docstring = re.findall(r"^    (D\d+) +(.+?)  +(.+?)  +(.+)$", decide.__doc__ or "", re.MULTILINE)
    document = [tuple(line.strip("| ").split(" | ")) for row, line in rows() if row.startswith("D")]
    assert document == docstring


def test_the_phases_of_the_document_are_those_of_the_test() -> None:
    tested = dict(re.findall(r"^PH(\d+) (\w+: .*-> \w+)", test_phase.ROWS, re.MULTILINE))
    expected = {f"PH{row}": (line.partition(":")[0], line.rpartition(" ")[2]) for row, line in tested.items()}
    cells = {row: line.strip("| ").split(" | ") for row, line in rows() if row.startswith("PH")}
    assert expected == {row: (policy, phase) for row, (_, policy, _, phase) in cells.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("W14", ["W14"]),
        ("S65 S99 of a pod", ["S65", "S99"]),
        ("PH10-PH12", ["PH10", "PH11", "PH12"]),
        ("HTTP200, x1, v1beta4, C_4, A100B, W1234, X509, K8s, E2E", []),
    ],
)
def test_what_is_an_id(text: str, expected: list[str]) -> None:
    assert expected == ids(text)
