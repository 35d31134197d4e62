"""What really runs: pytest with the chosen tests, the command line, and the map from lines to tests."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.power.checkouts import make_checkout
from tools.kit.pid import ProcessId
from tools.kit.waiting import wait_for
from tools.power import campaign, covering
from tools.power.campaign import START, Outcome, Runner
from tools.power.choosing import Batch
from tools.power.copied import Copy, CopyError

TESTS = """
import subprocess, sys, time
import pytest
from kube.small import double, one

@pytest.fixture(scope="module")
def shared():
    return subprocess.run([sys.executable, "-m", "kube.small"], capture_output=True, text=True, check=True).stdout

def test_double(): assert double(2) == 4
def test_shared(shared): assert shared == "3\\n"
def test_other(): assert one() == 1
def test_fails(): assert double(2) == 5
def test_hangs(): time.sleep(60)
def test_dear(): assert double(2) == 5
"""
SMALL = """
def double(number):
    return number * 2


def one():
    return 1


def three():
    return 3


if __name__ == "__main__":
    print(three())
"""
PATH = "tests/kube/test_small.py"
DIES, UNCLEAR, BROKEN = "tests/agent/test_dies.py", "tests/cli/test_it.py", "tests/agent/test_broken.py"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    files = {
        "kube/__init__.py": "",
        "kube/small.py": SMALL,
        PATH: TESTS,
        DIES: "import os\n\n\ndef test_dies(): os._exit(3)\n",
        "tests/cli/conftest.py": "1 / 0\n",
        UNCLEAR: "def test_it(): pass\n",
        BROKEN: "1 / 0\n",
        "tests/whole_only.txt": f"{PATH}::test_dear  # dear\n",
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-p no:hypothesispytest -p no:xdist"\ntimeout = 120\n',
    }
    folder = tmp_path_factory.mktemp("runs")
    made = Copy(make_checkout(folder / "checkout", files, instruments=True), folder / "copy")
    made.renew()
    return made


def batch(*tests: str, gate: bool = True, files: tuple[str, ...] = ()) -> Batch:
    return Batch(0, gate, tuple(f"{PATH}::{test}" for test in tests), files, 1.0, "key")


def test_the_chosen_tests_run_until_the_first_fails(copy: Copy) -> None:
    outcome = Runner(copy).run(batch("test_double", "test_fails", "test_other"))
    assert (outcome.failed, outcome.timeout, outcome.tests) == (f"{PATH}::test_fails", False, 3)


def test_a_test_left_out_and_tests_of_the_whole_proof_do_not_run_in_the_gate(copy: Copy) -> None:
    outcome = Runner(copy).run(batch(files=(PATH,)), without=[f"{PATH}::test_fails", f"{PATH}::test_hangs"])
    assert (outcome.failed, outcome.tests) == ("", 3)
    assert Runner(copy).run(batch(files=(PATH,), gate=False)).failed == f"{PATH}::test_dear"


def test_a_test_that_hangs_is_ended(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(campaign.TEST_TIMEOUT_S, 0, 1)
    outcome = Runner(copy).run(batch("test_double", "test_hangs"))
    assert (outcome.failed, outcome.timeout) == (f"{PATH}::test_hangs", True)


def test_a_run_that_hangs_as_a_whole_is_ended(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "START_S", 0.0)
    monkeypatch.setattr(campaign, "SLOWDOWN", 0.2)
    outcome = Runner(copy).run(batch("test_hangs"))
    assert outcome.timeout


def test_a_test_that_ends_pytest_has_failed(copy: Copy) -> None:
    assert Runner(copy).run(batch(files=(DIES,))) == Outcome(f"{DIES}::test_dies", tests=1)


def test_where_pytest_ends_before_the_first_test_its_start_has_failed(copy: Copy) -> None:
    assert Runner(copy).run(batch(files=(UNCLEAR,))) == Outcome(START)
    assert Runner(copy).run(batch(files=(UNCLEAR,)), only=START) == Outcome(START)
    assert Runner(copy).run(batch(files=(PATH,)), only=START) == Outcome()


def test_a_file_that_cannot_be_collected_can_be_left_out(copy: Copy) -> None:
    broken = batch(files=(BROKEN,))
    failed = f"{BROKEN} (collection)"
    assert Runner(copy).run(broken) == Outcome(failed)
    assert Runner(copy).run(broken, only=BROKEN) == Outcome(failed)
    assert Runner(copy).run(broken, without=[failed]) == Outcome()


def test_a_signal_while_pytest_is_started_ends_the_run(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(campaign.TEST_TIMEOUT_S, 0, 1)
    runner = Runner(copy)
    runner.stopping = True
    assert runner.run(batch("test_hangs")).tests == 0


@pytest.fixture(scope="module")
def measured(copy: Copy, tmp_path_factory: pytest.TempPathFactory) -> covering.Map:
    folder = tmp_path_factory.mktemp("map")
    (copy.folder / PATH).write_text(TESTS.replace("time.sleep(60)", "pass"))
    covering.measure(copy, "0-kube", folder)
    copy.restore()
    return covering.load([0], folder)


@pytest.mark.parametrize(
    ("line", "tests"),
    [
        pytest.param("return number * 2", {"test_double"}, id="a test that runs it and passes"),
        pytest.param("return 1", {"test_other"}, id="and no other"),
        pytest.param("return 3", {"test_shared"}, id="the tests of a shared fixture whose process runs it"),
    ],
)
def test_the_map_knows_which_tests_run_a_line(measured: covering.Map, line: str, tests: set[str]) -> None:
    number = next(n for n, text in enumerate(SMALL.splitlines(), 1) if text.strip() == line)
    assert {test.id for test in measured.covering("kube/small.py", [number])} == {f"{PATH}::{test}" for test in tests}


def test_a_run_of_pytest_that_was_cut_off_makes_no_map(copy: Copy, tmp_path: Path) -> None:
    with pytest.raises(CopyError, match=r"pytest ended with code 3 while it measured 0-agent: see .*pytest.log"):
        covering.measure(copy, "0-agent", tmp_path, [DIES])
    assert covering.load([0], tmp_path).tests == []


def test_coverage_that_was_never_measured_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CopyError, match="no coverage was measured for these rings"):
        covering.totals([0], tmp_path, tmp_path)


def test_a_file_of_which_sections_measured_different_texts_counts_as_changed(tmp_path: Path) -> None:
    measured = {
        "0-kube": {"kube/small.py": "old", "same.py": "a", PATH: "old"},
        "0-agent": {"kube/small.py": "new", "same.py": "a", PATH: "new", DIES: "new"},
    }
    for section, blobs in measured.items():
        (tmp_path / section).mkdir()
        facts = {"hash": "", "root": "", "blobs": blobs}
        (tmp_path / section / "sources.json").write_text(json.dumps(facts))
    assert covering.load([0], tmp_path).blobs == {"kube/small.py": "", "same.py": "a", PATH: "old", DIES: "new"}


# `python -m tools.power` with two faults: the first is caught, at the second a test hangs.
PROGRAM = """
import sys
from tools.power import __main__ as program, catalogue, covering
from tools.power.fault import Fault
def fault(name, old, new):
    start = open("kube/small.py").read().index(old)
    return Fault(name, "kube", "kube/small.py", start, old, new, name, (), ("tests/kube/test_two.py",))
catalogue.catalogue = lambda *_: [fault("first", "number * 2", "number * 3"), fault("second", "return 1", "return 2")]
sys.exit(program.main(sys.argv[1:]))
"""
TWO = """
import time
from kube.small import double, one
def test_double(): assert double(2) == 4
def test_one():
    if one() != 1: open("{began}", "w").close(); time.sleep(60)
"""


def test_a_campaign_ended_by_sigterm_goes_on_where_it_stopped(tmp_path: Path) -> None:
    began = tmp_path / "began"
    files = {"kube/__init__.py": "", "kube/small.py": SMALL, "tests/kube/test_two.py": TWO.format(began=began)}
    checkout = make_checkout(tmp_path / "checkout", files, instruments=True)
    argv = [sys.executable, "-c", PROGRAM, "run", "--rings", "0", "--old-map", "-o", "json"]
    first = subprocess.Popen(argv, cwd=checkout, stdout=subprocess.PIPE, text=True)
    assert wait_for(began.exists, timeout_s=60)
    first.send_signal(signal.SIGTERM)
    out, _ = first.communicate(timeout=60)
    assert (first.returncode, [json.loads(line)["fault"] for line in out.splitlines()]) == (130, ["first"])
    second = subprocess.run([*argv, "--limit", "0"], cwd=checkout, capture_output=True, text=True, timeout=120)
    assert (second.returncode, "1 to run" in second.stderr) == (3, True)
    assert "return 1" in (checkout / "build/power/planted/kube/small.py").read_text()


HANGS = """
import pathlib, subprocess, time
def test_it():
    left = subprocess.Popen(["sleep", "300"], start_new_session=True)
    pathlib.Path("{began}").write_text(str(left.pid))
    time.sleep(300)
"""
ONE_SECTION = """
import sys
from tools.power import __main__ as program, covering
covering.SECTIONS = {"0-kube": ("tests/kube/",)}
sys.exit(program.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("command", ["map", "run"])
def test_a_map_ended_by_sigterm_is_none_and_leaves_no_process(tmp_path: Path, command: str) -> None:
    began = tmp_path / "began"
    files = {"kube/__init__.py": "", "tests/kube/test_hangs.py": HANGS.format(began=began)}
    checkout = make_checkout(tmp_path / "checkout", files, instruments=True)
    argv = [sys.executable, "-c", ONE_SECTION, command, "--rings", "0"]
    child = subprocess.Popen(argv, cwd=checkout, stderr=subprocess.PIPE, text=True)
    assert wait_for(lambda: began.exists() and began.read_text(), timeout_s=60)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60)
    assert child.returncode == 130
    assert list((checkout / "build/power/map").glob("*/sources.json")) == []
    assert ProcessId.of(int(began.read_text())) is None
