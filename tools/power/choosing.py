"""Which tests run for a fault, and in which order: those that cover its lines, the cheapest ring first.

The tests of the gate come first, all rings; then those that only the whole proof runs.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tools.power.copied import Copy
from tools.power.covering import Map, MeasuredTest, section_of
from tools.power.fault import Fault
from tools.proof.durations import ring_of
from tools.proof.selection import LIST, in_gate, read

HOSTS_RING = 3
# Ring 3 is not measured. These are the tests of it that use most of a part.
HOST_TESTS = {
    "policy": ("tests/hosts/deployment/test_fault.py", "tests/hosts/deployment/test_deploy.py"),
    "verbs": ("tests/hosts/deployment/test_deploy.py", "tests/hosts/deployment/test_fault.py"),
    "serve": ("tests/hosts/deployment/test_deploy.py", "tests/hosts/deployment/test_static.py"),
    "agent": ("tests/hosts/test_hosts_cluster.py", "tests/hosts/service", "tests/hosts/deployment/test_fault.py"),
    "kube": ("tests/hosts/deployment/test_deploy.py", "tests/hosts/test_hosts_node_plugin.py"),
    "cli": ("tests/hosts/deployment/test_status_api.py",),
}
GUESSED_S = 2.0
"""Assumed time of a test that was never measured."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The tests of one ring for one run of pytest. gate: those in the gate, else those that only the whole proof runs.

    tests: ids in their order. files: all tests of these, where there is no map. seconds: an estimate. key: changes with
    the tests and with their files.
    """

    ring: int
    gate: bool
    tests: tuple[str, ...]
    files: tuple[str, ...]
    seconds: float
    key: str

    @property
    def paths(self) -> list[str]:
        """Returns the files that pytest collects, in the order in which it must run them."""
        return list(dict.fromkeys([*(test.partition("::")[0] for test in self.tests), *self.files]))

    @property
    def name(self) -> str:
        return f"{self.ring}{'g' if self.gate else 'w'}"


class Choosing:
    """Chooses tests by the map of a copy. Of test files that have changed since then, all tests are chosen."""

    def __init__(self, copy: Copy, covered: Map) -> None:
        self._copy = copy
        self._covered = covered
        self.blobs = copy.blobs()
        self._lines = read((copy.folder / "tests" / LIST.name).read_text())
        self._changed = {path for path, blob in covered.blobs.items() if self.blobs.get(path) != blob}

    def in_gate(self, test: str) -> bool:
        return in_gate([test], self._lines)[0]

    def batches(self, fault: Fault, rings: Iterable[int]) -> list[Batch]:
        wanted = sorted(set(rings))
        tests, files = self._of_python(fault) if fault.python else ([], self._expanded(fault.tests))
        if fault.python and HOSTS_RING in wanted:
            files = [*files, *self._expanded(HOST_TESTS[fault.part])]
        found = [self._batch(ring, gate, tests, files) for gate in (True, False) for ring in wanted]
        return [batch for batch in found if batch.tests or batch.files]

    def _batch(self, ring: int, gate: bool, tests: Sequence[tuple[str, float]], files: Sequence[str]) -> Batch:
        mine = [(test, s) for test, s in tests if ring_of(test) == ring and self.in_gate(test) is gate]
        whole = tuple(
            file for file in files if ring_of(file) == ring and (self.in_gate(file) if gate else self._listed(file))
        )
        paths = {*(test.partition("::")[0] for test, _ in mine), *whole}
        facts = [
            sorted(test for test, _ in mine),
            sorted(whole),
            sorted((path, self.blobs.get(path, "")) for path in paths),
        ]
        key = hashlib.sha256(json.dumps([*facts, gate]).encode()).hexdigest()[:12]
        seconds = sum(s for _, s in mine) + GUESSED_S * 20 * len(whole)
        return Batch(ring, gate, tuple(test for test, _ in mine), whole, seconds, key)

    def _listed(self, file: str) -> bool:
        """Whether the file has tests that only the whole proof runs."""
        return any(line.what.startswith(file) or line.covers(file) for line in self._lines)

    def _expanded(self, paths: Iterable[str]) -> list[str]:
        files: list[str] = []
        for path in paths:
            prefix = path if path.endswith(".py") else f"{path}/"
            files += [
                n for n in self._copy.files(prefix) if n.endswith(".py") and n.rpartition("/")[2].startswith("test_")
            ]
        return list(dict.fromkeys(files))

    def _of_python(self, fault: Fault) -> tuple[list[tuple[str, float]], list[str]]:
        changed = fault.file in self._changed
        lines = self._covered.lines(fault.file) if changed else fault.lines
        found = self._covered.covering(fault.file, lines) or self._of_constant(fault)
        mirror = _mirror(fault.file)
        per_file: dict[str, list[float]] = defaultdict(list)
        for test in found:
            per_file[test.path].append(test.seconds)
        rank = {path: (path != mirror, sum(seconds) / len(seconds)) for path, seconds in per_file.items()}
        found.sort(key=lambda test: (*rank[test.path], test.path, test.seconds))
        files = [path for path in rank if path in self._changed]
        if mirror in self.blobs and (not found or mirror in self._changed):
            files.append(mirror)
        files += self._new(mirror)
        return [(test.id, test.seconds) for test in found if section_of(test.id)], list(dict.fromkeys(files))

    def _new(self, mirror: str) -> list[str]:
        """Test files in the folder of the module's tests that are newer than the map."""
        folder = f"{mirror.rpartition('/')[0]}/test_"
        known = self._covered.blobs
        near = (path for path in self.blobs if path.startswith((folder, "tests/component/test_")))
        return [path for path in near if known.get(path) != self.blobs[path]]

    def _of_constant(self, fault: Fault) -> list[MeasuredTest]:
        """Returns the tests of lines in other files that use the constant; its own file does not use it."""
        found: dict[str, MeasuredTest] = {}
        word = re.compile(rf"\b{re.escape(fault.constant)}\b")
        package = f"{fault.file.partition('/')[0]}/"
        for file in self._copy.files(package) if fault.constant else ():
            text = self._copy.read(file) if file.endswith(".py") and file != fault.file else ""
            lines = [number for number, line in enumerate(text.splitlines(), 1) if word.search(line)]
            found |= {test.id: test for test in self._covered.covering(file, lines)} if lines else {}
        return list(found.values())


def _mirror(file: str) -> str:
    """Returns the test file of a module: extender/policy/caps.py -> tests/extender/policy/test_caps.py."""
    folder, _, name = file.rpartition("/")
    return f"tests/{folder}/test_{name}"
