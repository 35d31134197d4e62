"""docs/versions.md names the versions that the testbed has, and says of each what was run of it on rings 2 and 3."""

import re
from itertools import product
from pathlib import Path

from tools.testbed.shared.binaries import KUBERNETES_VERSION, VERSIONS

TEXT = (Path(__file__).resolve().parents[4] / "docs" / "versions.md").read_text()
NUMBERS = [version.removeprefix("v") for version in VERSIONS.values()]
# version, ring, tests, passed, failed, of these passed again alone, minutes, day
_WHOLE = re.compile(r"^\| ([\d.]+) \| ([23]) " + r"\| (\d+) " * 5 + r"\| \d{4}-\d\d-\d\d \|$", re.MULTILINE)
_ANY = re.compile(r"^\| (\d[\d.]+) \| ([23]) \|.*$", re.MULTILINE)
WHOLE = _WHOLE.findall(TEXT)


def test_what_was_compared_is_what_the_testbed_has():
    assert [f"| | {' | '.join(NUMBERS)} |"] * 2 == re.findall(r"^\| \|(?: [\d.]+ \|)+$", TEXT, re.MULTILINE)


def test_of_every_version_is_said_what_was_run_on_rings_2_and_3():
    assert list(product(NUMBERS, "23")) == _ANY.findall(TEXT)


def test_what_has_no_count_of_tests_says_that_it_was_not_run_whole():
    rows = [match[0] for match in _ANY.finditer(TEXT)]
    assert [] == [row for row in rows if not _WHOLE.match(row) and "| not run whole" not in row]


def test_of_a_whole_run_every_test_has_passed_or_failed_and_what_failed_has_passed_alone():
    counts = [tuple(map(int, run[2:6])) for run in WHOLE]
    assert counts == [(passed + failed, passed, failed, failed) for _, passed, failed, _ in counts]


def test_the_variable_is_shown_with_every_version_that_is_not_the_usual_one():
    others = [minor for minor, version in VERSIONS.items() if version != KUBERNETES_VERSION]
    assert others == re.findall(r"`READYGATE_KUBERNETES=([\d.]+)`", TEXT)
