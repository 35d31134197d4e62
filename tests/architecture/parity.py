"""`python -m tests.architecture.parity`: writes into docs/kubelet-parity.md which tests hold which row.

A row is held by a test that names it: in an id, a text, a comment or the name of a function. What the docstring of a
file or class says of many rows at once is no test, but in the targets of the comparison, which say so what they draw.
"""

import ast
import re
import subprocess
from functools import cache
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "kubelet-parity.md"
ROW = re.compile(r"\b([A-Z]{1,2})(1?\d{1,2})(?:-\1(1?\d{1,2}))?\b")  # W14, or W55-W57 for three of them
CELL = re.compile(r"\| ([A-Z]{1,2}\d[-A-Z\d]*) \| ")
LINTER = re.compile(r"# (?:ruff: )?noqa.*")  # the linter's rules have names of the same shape
KERNEL = re.compile(r"Mounting V\d")  # so have its words of a file system
TEST_NAME = re.compile(r"test((?:_[a-z]{1,2}1?\d{1,2})+)_")
OPEN = ("*Not built", "*Not covered", "*Not reproduced")
# The rows of docs/reliability.md are other ones, which only these name. tests/tools/soak/test_rows.py checks them.
SCORECARD = ("tools/soak/", "tools/chaos/", "tests/tools/soak/", "tests/tools/chaos/")
COMPARED = "tools/differential/targets/"
_BEGIN, _END = "<!-- rows: begin -->", "<!-- rows: end -->"


def ids(text: str) -> list[str]:
    """Each id of a text, ranges taken apart."""
    return [
        f"{prefix}{number}"
        for prefix, first, last in ROW.findall(text)
        for number in range(int(first), int(last or first) + 1)
    ]


def names_rows(source: str, *, docstrings: bool) -> set[str]:
    """The ids that a file of Python mentions: in texts, comments, and names of tests; and where `docstrings`, in those
    of the file and of its classes."""
    tree, text = ast.parse(source), KERNEL.sub("", LINTER.sub("", source))
    if not docstrings:
        for node in (tree, *(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef))):
            text = text.replace(ast.get_docstring(node, clean=False) or "\0", "", 1)
    found = set(ids(text))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (match := TEST_NAME.match(node.name)):
            found |= set(ids(match[1].upper().replace("_", " ")))
    return found


@cache
def sources() -> dict[str, str]:
    """By path: each file of Python that git knows or would take, but those of the scorecard and these two."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    here = ("tests/architecture/", *SCORECARD)
    return {name: (ROOT / name).read_text() for name in told if (ROOT / name).exists() and not name.startswith(here)}


@cache
def held() -> dict[str, list[str]]:
    """By id: the tests that hold it, and the targets that compare it, by their path."""
    found: dict[str, list[str]] = {}
    for name, source in sources().items():
        if name.startswith(("tests/", "tools/")):
            for row in names_rows(source, docstrings=name.startswith(COMPARED)):
                found.setdefault(row, []).append(name)
    return found


def rows(document: Path = DOCUMENT) -> list[tuple[str, str]]:
    """(id, line) of each row of a document."""
    lines = document.read_text().partition(_BEGIN)[0].splitlines()
    return [(row, line) for line in lines if (cell := CELL.match(line)) for row in ids(cell[1])]


def state(row: str, line: str) -> str:
    if any(word in line for word in OPEN):
        return "not reproduced" if OPEN[-1] in line else "not covered"
    tests = held().get(row, [])
    return "compared" if tests and all(name.startswith(COMPARED) for name in tests) else "held" if tests else "unheld"


def index() -> str:
    """Neighbours that the same tests hold are one line."""
    found = [(row, state(row, line), tuple(sorted(held().get(row, ())))) for row, line in rows()]
    lines = ["| rows | state | tests |", "|---|---|---|"]
    for (prefix, said, tests), group in groupby(found, lambda f: (f[0].rstrip("0123456789"), f[1], f[2])):
        numbers = [int(row.removeprefix(prefix)) for row, _, _ in group]
        names = ", ".join(f"`{name}`" for name in tests) or "-"
        lines.append(f"| {_told(prefix, numbers)} | {said} | {names} |")
    return "\n".join(lines)


def _told(prefix: str, numbers: list[int]) -> str:
    """`W1 to W3, W7`: no ids that a search for rows of a table would take for one."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{prefix}{r[0]}" + (f" to {prefix}{r[-1]}" if len(r) > 1 else "") for r in runs)


def with_index(text: str) -> str:
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"{DOCUMENT}: no {_BEGIN} and {_END}")
    return f"{before}{_BEGIN}\n{index()}\n{_END}{after}"


if __name__ == "__main__":
    DOCUMENT.write_text(with_index(DOCUMENT.read_text()))
