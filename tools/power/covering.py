"""Which tests cover a line: measured by coverage.py, and kept in build/power/map until the sources change.

The map of a section of the tests is one database of coverage.py, and a list of the tests with their seconds.
`python -m tools.power map` makes it; a run makes what is missing.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import coverage
from coverage.numbits import numbits_to_nums

from tools.kit.whole import end_marked
from tools.power.contexts import CONTEXT_VARIABLE, FOLDER_VARIABLE, context_of
from tools.power.copied import FOLDER, Copy, CopyError
from tools.proof.durations import ring_of

PACKAGES = ("component", "kube", "agent", "extender", "cli")
SECTIONS = {
    "0-policy": ("tests/extender/policy/",),
    "0-verbs": ("tests/extender/verbs/", "tests/extender/serve/"),
    "0-extender": ("tests/extender/",),
    "0-kube": ("tests/kube/", "tests/component/", "tests/contract/"),
    "0-checks": ("tests/agent/checks/",),
    "0-probe": ("tests/agent/probe/", "tests/agent/kubelet/prober/"),
    "0-agent": ("tests/agent/",),
    "0-cli": ("tests/cli/",),
    "0-tools": ("tests/tools/",),
    "1-extender": ("tests/scripted/test_extender", "tests/scripted/test_kick", "tests/scripted/test_status_api"),
    "1-rest": ("tests/scripted/",),
    "2-plane": ("tests/plane/",),
}
"""The sections of the tests, which are measured one by one: the first whose prefix the name of a test file has."""
SUCCESS, HAS_FAILURES = 0, 1
"""Exit codes of pytest after a run to its end."""
MARK_VARIABLE = "READYGATE_POWER_RUN"
_UNRELATED = ("tests/tools/power/",)
_CONFIG = """[run]
branch = true
parallel = true
data_file = {data}
source =
    {sources}
context = ${{{variable}}}
patch = fork, _exit
disable_warnings = no-data-collected, module-not-measured, module-not-imported, couldnt-parse, no-sysmon
"""


def test_files(copy: Copy, section: str) -> list[str]:
    """The files of the section that pytest collects."""
    return [name for name in copy.files("tests/") if _is_test(name) and section_of(name) == section]


def _is_test(name: str) -> bool:
    return name.endswith(".py") and name.rpartition("/")[2].startswith("test_") and not name.startswith(_UNRELATED)


def section_of(test: str) -> str:
    """test: its file or id. "" for one that is not measured."""
    fitting = (section for section, prefixes in SECTIONS.items() if test.startswith(prefixes))
    return next(fitting, "")


def sources_hash(copy: Copy, section: str) -> str:
    """Of all Python that the map of a section depends on: the product, instruments but this one, and its tests."""
    prefixes = (*(f"{package}/" for package in PACKAGES), "tools/", *SECTIONS[section])
    blobs = sorted((n, b) for n, b in copy.blobs().items() if n.startswith(prefixes) and "tools/power/" not in n)
    return hashlib.sha256(json.dumps(blobs).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class MeasuredTest:
    """seconds: wall, on a quiet machine. contexts: its own, and those of the shared fixtures that it uses."""

    id: str
    seconds: float
    contexts: frozenset[str]

    @property
    def path(self) -> str:
        return self.id.partition("::")[0]

    @property
    def ring(self) -> int:
        return ring_of(self.id)


def measure(copy: Copy, section: str, folder: Path = FOLDER / "map", files: list[str] | None = None) -> Path:
    """Runs a section in the copy and measures it. files: these of its tests alone. Returns the map's folder.

    Raises CopyError if pytest did not run to its end: such a map is never used.
    """
    target = folder / section
    shutil.rmtree(target, ignore_errors=True)
    (target / "data").mkdir(parents=True)
    (target / "data").chmod(0o777)  # programs that leave root write there too
    config = target / "coverage.ini"
    sources = "\n    ".join(str(copy.folder / package) for package in PACKAGES)
    config.write_text(_CONFIG.format(data=target / "data" / "part", sources=sources, variable=CONTEXT_VARIABLE))
    variables = {CONTEXT_VARIABLE: "", FOLDER_VARIABLE: str(target / "tests"), "COVERAGE_PROCESS_START": str(config)}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "tools.power.contexts", "-p", "no:cacheprovider"]
    argv += ["--timeout=600", f"--rootdir={copy.folder}", *(files or test_files(copy, section))]
    code = _run(argv, copy, variables, target / "pytest.log")
    if code not in (SUCCESS, HAS_FAILURES):
        raise CopyError(f"pytest ended with code {code} while it measured {section}: see {target / 'pytest.log'}")
    _combine(target)
    facts = {"hash": sources_hash(copy, section), "root": str(copy.folder), "blobs": copy.blobs()}
    (target / "sources.json").write_text(json.dumps(facts))
    return target


def _run(argv: list[str], copy: Copy, variables: dict[str, str], log: Path) -> int:
    """Returns the exit code of pytest. Each process that a test started is ended, also when this one is interrupted."""
    mark = f"{os.getpid()}-map"
    environ = copy.environ(**variables, **{MARK_VARIABLE: mark})
    try:
        with log.open("w") as output:
            return subprocess.run(argv, cwd=copy.folder, env=environ, stdout=output, stderr=output).returncode
    finally:
        end_marked(mark, variable=MARK_VARIABLE)


def _combine(target: Path) -> None:
    combined = coverage.Coverage(data_file=str(target / "coverage.sqlite"), config_file=False, branch=True)
    combined.combine([str(part) for part in sorted((target / "data").glob("part.*"))], strict=False)
    combined.save()
    shutil.rmtree(target / "data", ignore_errors=True)


@dataclass
class Map:
    """What was measured.

    blobs: of each file as it was measured; "" for one of which sections measured different texts.
    databases: of coverage.py, each with the folder of the copy that it was measured in.
    """

    tests: list[MeasuredTest] = field(default_factory=list)
    blobs: dict[str, str] = field(default_factory=dict)
    databases: list[tuple[Path, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._contexts_at = cache(self._read_contexts)

    def _read_contexts(self, file: str) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {}
        for database, root in self.databases:
            with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
                _read_arcs(connection, f"{root}/{file}", found)
        return found

    def covering(self, file: str, lines: Iterable[int]) -> list[MeasuredTest]:
        """Tests that run one of the lines, themselves or by a shared fixture that they use."""
        at = self._contexts_at(file)
        contexts = set().union(*(at.get(line, set()) for line in lines)) - {""}
        return [test for test in self.tests if test.contexts & contexts]

    def lines(self, file: str) -> set[int]:
        """Those that were run at all."""
        return {line for line, contexts in self._contexts_at(file).items() if contexts}


def _read_arcs(connection: sqlite3.Connection, path: str, found: dict[int, set[str]]) -> None:
    """Contexts of coverage.py are `static|dynamic`; each half is a hash or empty."""
    of_arcs = "select c.context, a.fromno, a.tono from arc a join file f on f.id = a.file_id join context c"
    for context, start, end in connection.execute(f"{of_arcs} on c.id = a.context_id where f.path = ?", (path,)):
        for line in (abs(start), abs(end)):
            found.setdefault(line, set()).update(context.split("|"))
    of_lines = "select c.context, b.numbits from line_bits b join file f on f.id = b.file_id join context c"
    for context, bits in connection.execute(f"{of_lines} on c.id = b.context_id where f.path = ?", (path,)):
        for line in numbits_to_nums(bits):
            found.setdefault(line, set()).update(context.split("|"))


def _read_tests(target: Path) -> list[MeasuredTest]:
    found: dict[str, MeasuredTest] = {}
    for path in sorted((target / "tests").glob("*.jsonl")):
        for line in map(json.loads, path.read_text().splitlines()):
            contexts = frozenset(map(context_of, (line["test"], *line["fixtures"])))
            if line["passed"]:
                found[line["test"]] = MeasuredTest(line["test"], line["seconds"], contexts)
    return list(found.values())


def load(rings: Iterable[int], folder: Path = FOLDER / "map") -> Map:
    """Returns the maps of these rings that exist, also those of older sources."""
    whole = Map()
    for target in _measured(rings, folder):
        whole.tests += _read_tests(target)
        facts = json.loads((target / "sources.json").read_text())
        for path, blob in facts["blobs"].items():
            if section_of(path) in ("", target.name) and whole.blobs.setdefault(path, blob) != blob:
                whole.blobs[path] = ""
        whole.databases.append((target / "coverage.sqlite", facts["root"]))
    return whole


def sections(rings: Iterable[int]) -> list[str]:
    wanted = tuple(f"{ring}-" for ring in rings)
    return [section for section in SECTIONS if section.startswith(wanted)]


def _measured(rings: Iterable[int], folder: Path) -> list[Path]:
    return [folder / section for section in sections(rings) if (folder / section / "sources.json").exists()]


def current(copy: Copy, section: str, folder: Path = FOLDER / "map") -> bool:
    """Whether the map of a section was measured with the sources of the copy."""
    facts = folder / section / "sources.json"
    return facts.exists() and json.loads(facts.read_text())["hash"] == sources_hash(copy, section)


def totals(rings: Iterable[int], root: Path, folder: Path = FOLDER / "map") -> dict[str, dict[str, float]]:
    """Returns line and branch coverage in percent of each package, under these rings together.

    Raises CopyError if no map of these rings exists.
    """
    if not (measured := _measured(rings, folder)):
        raise CopyError("no coverage was measured for these rings: run `make test-power ARGS=map` first")
    whole = coverage.Coverage(data_file=str(folder / "all.sqlite"), config_file=False, branch=True, source=[str(root)])
    (folder / "all.sqlite").unlink(missing_ok=True)
    whole.combine([str(part / "coverage.sqlite") for part in measured], strict=False, keep=True)
    report = folder / "totals.json"
    rows: dict[str, dict[str, float]] = {}
    for package in PACKAGES:
        whole.json_report(outfile=str(report), include=[f"{root}/{package}/*"])
        facts = json.loads(report.read_text())["totals"]
        rows[package] = {
            "lines": facts["num_statements"],
            "lines_percent": round(100 * facts["covered_lines"] / max(facts["num_statements"], 1), 1),
            "branches": facts["num_branches"],
            "branches_percent": round(100 * facts["covered_branches"] / max(facts["num_branches"], 1), 1),
        }
    report.unlink(missing_ok=True)
    return rows


Say = Callable[[str], None]


def need(copy: Copy, rings: Iterable[int], say: Say, folder: Path = FOLDER / "map") -> None:
    """Measures the sections whose map is not of these sources."""
    for section in sections(rings):
        if not current(copy, section, folder):
            say(f"map: measuring {section}, its log is {os.path.relpath(folder / section / 'pytest.log')}")
            measure(copy, section, folder)
