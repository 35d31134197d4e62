"""What ARCHITECTURE.md and docs/ say of rooms, threads and verdicts is what the code has."""

import ast
import re
from pathlib import Path

import pytest

from extender.policy import verdict

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
PACKAGES = sorted(path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name not in {"tests", "tools"})


def section(title: str) -> str:
    """The text under one heading of ARCHITECTURE.md."""
    return re.split(r"^## ", ARCHITECTURE.partition(f"\n## {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def table(text: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_table_of_verdicts_is_the_one_of_the_code() -> None:
    """By the docstring of extender.policy.verdict: the same rows, in the same order and words."""
    docstring = re.findall(r"^    (\S.*?)  +(\S.*)$", verdict.__doc__ or "", re.MULTILINE)
    assert len(docstring) > 8
    assert [list(row) for row in docstring] == table(section("How the verdict is made"))


# Threads


def text_of(node: ast.expr) -> str | None:
    """A string as it is, an f-string with * for each part that varies; None for anything else."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=values):
            parts = [part.value if isinstance(part, ast.Constant) else "*" for part in values]
            return re.sub(r"\*(?:-\*)+", "*", "".join(str(part) for part in parts))
    return None


def thread_names(source: str) -> set[str]:
    """Names given to a Thread, or as the first argument or `name` to a Loop, which makes one.

    An unnamed Thread is one that ends with the call that made it.
    """
    names: set[str] = set()
    for call in [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]:
        callee = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        given = [keyword.value for keyword in call.keywords if keyword.arg == "name"]
        if callee == "Loop":
            given += call.args[:1]
        elif callee != "Thread":
            continue
        names |= {name for name in map(text_of, given) if name is not None}
    return names


def test_the_threads_are_those_of_the_code() -> None:
    in_code = {
        (package, f"`{name}`")
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for name in thread_names(path.read_text())
    }
    documented = [(program, thread) for program, thread, _ in table(section("Threads"))]
    assert sorted(in_code) == sorted(documented), "mend the table under Threads in ARCHITECTURE.md"


def test_the_journey_names_threads_that_exist() -> None:
    named = {name for row in table(section("The journey of one probe result")) for name in re.findall("`.+?`", row[2])}
    assert named - {thread for _, thread, _ in table(section("Threads"))} == set()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('threading.Thread(target=run, name="a-b")', {"a-b"}),
        ('Thread(target=run, name=f"probe-{a}-{b.c}-{d}")', {"probe-*"}),
        ('Loop(f"check-{name}", turn, stuck_after_s=1)', {"check-*"}),
        ('Loop(name="tick", turn=turn)', {"tick"}),
        ("Thread(target=run, name=self.name)", set()),
        ('Reflector(lister, store, name="pods")', set()),
    ],
)
def test_how_a_thread_gets_its_name(source: str, expected: set[str]) -> None:
    assert expected == thread_names(source)


# Rooms


def listed(line: str) -> set[str]:
    """The modules a line names after its last colon: "what it is: one, two (a word on it), three"."""
    return {name.strip().removesuffix("/") for name in re.sub(r"\(.*?\)", "", line).rpartition(":")[2].split(",")}


def documented_rooms() -> dict[str, str]:
    """By path, as "agent/probe" or "agent/wire/model": what the picture of the rooms says of it."""
    picture = re.sub(r"\n {10,}", " ", section("Rooms").split("```")[1])  # a long line goes on in the next
    rooms: dict[str, str] = {}
    top = ""
    for line in picture.splitlines()[1:]:
        name, _, text = line.strip().partition(" ")
        if line[:1].strip():
            top = name.removesuffix("/")
            rooms[top] = text
        elif name:
            rooms[f"{top}/{name.removesuffix('/')}"] = text
    return rooms


def modules(folder: Path) -> set[str]:
    """Names of the modules and packages in a folder."""
    files = {path.stem for path in folder.glob("*.py") if path.name != "__init__.py"}
    return files | {path.parent.name for path in folder.glob("*/__init__.py")}


def in_docstring(folder: Path) -> set[str]:
    """The modules in the table of a package's docstring: four blanks, the name, two blanks or more, its text."""
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    return {name.removesuffix(".py") for name in re.findall(r"^    ([\w.]+)  +\S", docstring, re.MULTILINE)}


ROOMS = documented_rooms()


def folders() -> list[str]:
    """Each package, and each folder in it."""
    found = [path.parent for package in PACKAGES for path in (ROOT / package).rglob("__init__.py")]
    return [str(path.relative_to(ROOT)) for path in found if len(path.relative_to(ROOT).parts) <= 2]


@pytest.mark.parametrize("folder", sorted(folders()))
def test_the_rooms_are_those_of_the_code(folder: str) -> None:
    """A room's line in ARCHITECTURE.md lists its modules, or the docstring of its package does."""
    children = {room.rpartition("/")[2] for room in ROOMS if room.rpartition("/")[0] == folder}
    line = ROOMS.get(folder, "")
    in_package = set() if ":" in line else in_docstring(ROOT / folder)
    documented = children or in_package or listed(line)
    assert modules(ROOT / folder) == documented, f"mend {folder}/ under Rooms in ARCHITECTURE.md, or its __init__"


def test_no_room_is_drawn_that_does_not_exist() -> None:
    here = [room for room in ROOMS if (ROOT / room).is_dir() or (ROOT / f"{room}.py").is_file()]
    assert here == list(ROOMS)


def test_each_module_that_architecture_names_exists() -> None:
    named = set(re.findall(rf"\b(?:{'|'.join(PACKAGES)})(?:\.\w+)+", ARCHITECTURE))
    paths = {name: ROOT / name.replace(".", "/") for name in named}
    assert {
        name for name, path in paths.items() if not path.is_dir() and not path.with_suffix(".py").is_file()
    } == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_path_that_a_document_names_exists(document: Path) -> None:
    """Paths below our own folders; a pattern of several, as `tests/{kube,agent}`, is not looked at."""
    tops = "|".join([*PACKAGES, "docs", "images", "playbooks", "scripts", "tests", "tools"])
    paths = re.findall(rf"`((?:{tops})/[\w./-]*)`", document.read_text())
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_test_that_a_document_names_exists(document: Path) -> None:
    """Named as pytest names it: the file, two colons, the function."""
    missing = []
    for path, function in re.findall(r"`(tests/[\w./-]+\.py)::(\w+)`", document.read_text()):
        file = ROOT / path
        if not file.is_file() or f"def {function}(" not in file.read_text():
            missing.append(f"{path}::{function}")
    assert missing == []


def test_each_identity_of_the_threat_model_has_a_test_or_says_that_there_is_none() -> None:
    rows = table((ROOT / "docs" / "threat-model.md").read_text())
    assert len(rows) > 10
    unproven = [row[0] for row in rows if "::test_" not in row[3] and row[3] != "none"]
    assert unproven == []


def test_each_command_that_proves_a_fix_names_tests_that_exist() -> None:
    """In docs/reliability.md `T` stands for pytest; -k takes one word, a part of a test's name."""
    text = (ROOT / "docs" / "reliability.md").read_text()
    rows = table(text.partition("\n## Bugs and the commands that prove their fixes\n")[2].partition("\n## ")[0])
    assert len(rows) > 20
    wrong = [row[0] for row in rows if not re.fullmatch(r"`T tests/.*`", row[2])]
    for command in [command for row in rows for command in re.findall(r"`T ([^`]+)`", row[2])]:
        paths, _, word = command.partition(" -k ")
        files = [ROOT / path for path in paths.split()]
        tests = [name for file in files if file.is_file() for name in re.findall(r"def (test_\w+)", file.read_text())]
        if not all(file.is_file() for file in files) or not any(word.lower() in name.lower() for name in tests):
            wrong.append(command)
    assert wrong == []
