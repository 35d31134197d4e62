"""The rules of the house that a linter of imports does not know: pure rooms, late imports, sizes, words."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from extender.policy import reasons
from tests.architecture import rooms
from tests.architecture.source import ROOT, circles, imports, name_of

PACKAGES = ("component", "kube", "agent", "extender", "cli")
PRODUCT = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
PURE = re.compile(r"\bPure[.:;]")  # what the docstring of a pure module says
IMPURE = {
    *("flask", "kubernetes", "logging", "os", "pathlib", "platform", "queue", "random", "selectors", "socket"),
    *("subprocess", "tempfile", "threading", "time", "urllib3"),
}

GRPC = {"grpc", "grpc_health"}


def imported_by(name: str) -> list[str]:
    return [
        str(path.relative_to(ROOT))
        for path in PRODUCT
        if any(module == name or module.startswith(f"{name}.") for module in imports(path))
    ]


PURE_MODULES = [path for path in PRODUCT if PURE.search(ast.get_docstring(ast.parse(path.read_text())) or "")]


@pytest.mark.parametrize("room", PURE_MODULES, ids=name_of)
def test_a_room_that_calls_itself_pure_knows_no_clock_no_lock_no_socket_no_file_and_no_log(room: Path) -> None:
    assert {name for name in imports(room) if name.split(".")[0] in IMPURE} == set()


def test_the_rooms_that_decide_call_themselves_pure() -> None:
    decide = {
        "agent/kubelet/prober/decide.py",
        "agent/kubelet/status/conditions.py",
        "extender/policy/verdict.py",
        "kube/watching.py",
    }
    assert decide - {name_of(path) for path in PURE_MODULES} == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(PRODUCT) == []


@pytest.mark.parametrize(("part", "most_rooms", "most_floors", "most_arrows"), [("cli", 12, 6, 40)])
def test_a_part_keeps_its_size_and_no_two_rooms_import_each_other(
    part: str, most_rooms: int, most_floors: int, most_arrows: int
) -> None:
    arrows = rooms.arrows_of(part)
    assert (len(arrows) <= most_rooms, rooms.floors(arrows) <= most_floors) == (True, True), rooms.lines([part])
    assert (sum(map(len, arrows.values())) <= most_arrows, rooms.mutual(arrows)) == (True, []), rooms.lines([part])


def test_rooms_floors_and_arrows_are_counted_by_folder(tmp_path: Path) -> None:
    files = {
        "top": "from part.left import a\n",
        "left/__init__": "import part.top\n",
        "left/a": "from part.right.deep import b\nfrom part.left import c\n",
        "left/c": "",
        "right/deep/b": "from part import low\nimport part.left.c\n",
        "low": "import os\n",
    }
    for name, text in files.items():
        (tmp_path / "part" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "part" / f"{name}.py").write_text(text)
    assert rooms.lines(["part"], tmp_path) == [
        "part         4 rooms   3 floors    4 arrows",
        "part       part.left and part.right import each other",
    ]


def test_only_the_kubeconfig_room_imports_the_package_kubernetes() -> None:
    assert imported_by("kubernetes") == ["kube/kubeconfig.py"]


def test_only_the_port_forward_of_the_command_line_imports_websocket() -> None:
    assert imported_by("websocket") == ["cli/shared/port_forward.py"]


@pytest.mark.parametrize("package", ["agent", "tests", "tools", "images", "scripts"])
def test_nobody_imports_grpc_but_by_agent_rpc(package: str) -> None:
    """In the tests' process too: one import before the environment is set, and now and then a child of it dies."""
    found = {path: imports(path) for path in (ROOT / package).rglob("*.py")}
    assert [name_of(path) for path, names in found.items() if {n.split(".")[0] for n in names} & GRPC] == []


def test_flask_stays_in_the_extender() -> None:
    assert {path.split("/")[0] for path in imported_by("flask")} == {"extender"}


def test_the_contract_holds_words_only() -> None:
    assert imports(ROOT / "kube/contract.py") == set()


FILE_LIMIT_LINES = 400
FUNCTION_LIMIT_LINES = 72
GENERATED = {"agent/cri/api_pb2.py", "agent/kubelet/plugins/api_pb2.py", "agent/podsapi/api_pb2.py"}
PACKAGE_TEXT_LINES = 8  # what the room is, what it guarantees, who may import it


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split() if name not in GENERATED]


def test_no_file_is_two_rooms() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in tracked()}
    assert {name: length for name, length in lengths.items() if length > FILE_LIMIT_LINES} == {}


def test_no_function_is_longer_than_a_screen_and_a_half() -> None:
    found = {
        f"{name_of(path)}: {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in tracked()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: length for name, length in found.items() if length > FUNCTION_LIMIT_LINES} == {}


@pytest.mark.parametrize("package", [p for p in PRODUCT if p.name == "__init__.py"], ids=name_of)
def test_each_package_says_what_it_is_what_it_guarantees_and_who_may_import_it(package: Path) -> None:
    text = ast.get_docstring(ast.parse(package.read_text())) or ""
    assert (True, True) == (len(text.splitlines()) >= PACKAGE_TEXT_LINES, bool(re.search(r"[Ii]mport", text)))


JSON_KEYS = {"apiVersion", "kind", "metadata", "spec"}  # of every Kubernetes object


def keys_spelled(path: Path) -> set[str]:
    """The keys of Kubernetes objects in the dictionaries that a file writes or reads."""
    found: set[object] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Dict):
            found |= {key.value for key in node.keys if isinstance(key, ast.Constant)}
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            found.add(node.slice.value)
    return {key for key in JSON_KEYS if key in found}


def test_the_agent_spells_json_keys_in_wire_only() -> None:
    """But for the algorithm that merges JSON, which puts the patch's envelope around it."""
    found = {name_of(path) for path in PRODUCT if name_of(path).startswith("agent/") and keys_spelled(path)}
    assert {name for name in found if not name.startswith("agent/wire/")} == {"agent/kubelet/status/patch.py"}


def test_the_ground_floor_stays_small() -> None:
    assert sum(len(path.read_text().splitlines()) for path in (ROOT / "component").glob("*.py")) <= 450


CLOSED_REASONS = [value for name, value in vars(reasons).items() if name.startswith("CLOSED_")]


def test_there_are_at_most_seven_reasons_and_no_two_are_equal() -> None:
    assert sorted(reasons.REASONS) == sorted(set(CLOSED_REASONS))
    assert len(CLOSED_REASONS) <= 7


@pytest.mark.parametrize("reason", CLOSED_REASONS)
def test_a_reason_has_nothing_that_could_change_or_break_an_event(reason: str) -> None:
    assert re.findall(r"[%\d]", reason) == []
