"""`make test` as a person meets it: interrupted it still tells what it knows, and it leaves no process behind."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tools import run
from tools.kit.pid import ProcessId
from tools.kit.waiting import wait_for
from tools.run import Runner, Step
from tools.testbed.shared import obstacles

ROOT = Path(__file__).resolve().parents[1]
TESTS = """
import time
def test_that_fails():
    assert "what was wanted" == "what was there"
def test_that_hangs():
    print("hangs now")
    time.sleep(300)
"""
# `python -m tools.run fast` with other steps.
PROGRAM = """
import sys
from tools import run
run.LOGS = run.Path(sys.argv[1])
run.SELECTIONS["fast"] = [
    run.Step("tests", [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", sys.argv[2]], "some tests"),
    run.Step("later", ["true"], "never comes"),
]
sys.exit(run.main(["fast"]))
"""


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run, "LOGS", tmp_path)
    return tmp_path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_interrupted_it_tells_what_failed_until_then_and_prints_its_table(tmp_path, number):
    tests = tmp_path / "test_some.py"
    tests.write_text(TESTS)
    argv = [sys.executable, "-c", PROGRAM, str(tmp_path), str(tests)]
    child = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert child.stdout is not None
    seen = ""
    for line in child.stdout:
        seen += line
        if "test_that_fails FAILED" in line:
            time.sleep(0.5)  # the next one has begun
            child.send_signal(number)
            break
    seen += child.communicate(timeout=60)[0]
    assert 130 == child.returncode
    assert "what was there" in seen, "pytest's failure section"
    assert "\n0 passed, 1 failed, 1 skipped\n" in seen
    table = {line.split()[0]: line.split()[1] for line in seen[seen.index("\nstep ") :].splitlines()[2:4]}
    assert {"tests": "INTERRUPTED", "later": "NOT"} == table


def test_what_a_failed_step_leaves_running_is_ended_and_told(capsys):
    # Ends when the other has become what it will be called: before, it is one more shell.
    leaving = "sleep 300 >/dev/null 2>&1 & until grep -qx sleep /proc/$!/comm; do :; done; echo pid $!; exit 1"
    row = Runner().run(Step("leaving", ["sh", "-c", leaving], "a test that fails"))
    assert ("FAILED (1)", "left 1 processes") == (row.result, row.note)
    out = capsys.readouterr().out
    assert "== leaving had left, now ended: sleep 300" in out
    assert ProcessId.of(int(out.split("pid ")[1].split()[0])) is None


def test_a_step_that_keeps_its_output_open_holds_nobody(capsys):
    started = time.monotonic()
    row = Runner().run(Step("open", ["sh", "-c", "sleep 300 & echo said"], "leaves its output open"))
    assert row.result == "passed"
    assert "said" in capsys.readouterr().out
    assert time.monotonic() - started < 60


def test_steps_that_need_a_failed_one_are_not_run_the_others_are():
    steps = [Step("first", ["false"], ""), Step("second", ["true"], "", needs="first"), Step("third", ["true"], "")]
    assert ["FAILED (1)", "NOT RUN", "passed"] == [row.result for row in Runner().run_all(steps)]


# Passes from the second time on, or never.
OF_SECONDS = """
from pathlib import Path
import pytest
def test_that_passes():
    pass
@pytest.mark.parametrize("number", range({count}))
def test_of_seconds(number):
    met = Path(__file__).with_name("met-" + str(number))
    passes = met.exists() and not {always}
    met.touch()
    assert passes
"""


@pytest.mark.parametrize(
    ("files", "count", "always", "beside", "expected"),
    [
        pytest.param(1, 1, False, True, ["passed", "1 failed, 1 passed", "alone: 1 passed"], id="passed alone it has"),
        pytest.param(3, 1, True, True, ["FAILED (1)", "3 failed, 3 passed", "alone: 3 failed"], id="failed again"),
        pytest.param(1, 9, False, True, ["passed", "9 failed, 1 passed", "alone: 9 passed"], id="one cause for a file"),
        pytest.param(4, 1, False, True, ["FAILED (1)", "4 failed, 4 passed"], id="four files are not by chance"),
        pytest.param(1, 1, False, False, ["FAILED (1)", "1 failed, 1 passed"], id="where nothing ran beside it stands"),
    ],
)
def test_what_failed_beside_another_step_is_run_once_more_alone(
    files, count, always, beside, expected, tmp_path, monkeypatch
):
    monkeypatch.setattr(run, "ROOT", tmp_path)
    for number in range(files):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / f"test_it_{number}.py").write_text(OF_SECONDS.format(count=count, always=always))
    step = run.tests_step("it", [sys.executable, "-m", "pytest", "-q", str(tmp_path)], "")
    other = [Step("other", ["true"], "", beside=True)] if beside else []
    row = Runner().run_all([*other, step])[-1]
    told = [row.result, *(re.sub(r" in .*| \(.*", "", part) for part in row.note.split("; "))]
    assert (expected, "it") == (told, row.name)


def test_a_step_beside_others_is_waited_for_and_what_it_printed_comes_as_a_whole(tmp_path, capsys):
    meet = f"until [ -e {tmp_path}/met ]; do sleep 0.05; done"
    steps = [
        Step("long", ["sh", "-c", f"echo one; {meet}; echo two; exit 3"], "", beside=True),
        Step("short", ["sh", "-c", f"echo between; touch {tmp_path}/met"], ""),
        Step("after", ["true"], "", needs="long"),
    ]
    rows = Runner().run_all(steps)
    assert [("long", "FAILED (3)"), ("short", "passed"), ("after", "NOT RUN")] == [
        (row.name, row.result) for row in rows
    ]
    out = capsys.readouterr().out
    assert "== what long has printed\none\ntwo\n== end of long\n" in out
    assert "one\ntwo\n" == (tmp_path / "long.log").read_text()


@pytest.mark.parametrize("code", [0, 1], ids=["which passes", "which fails"])
def test_a_step_comes_after_the_one_beside_it_that_it_waits_for(tmp_path, code):
    """Whatever comes of that one, and the steps in between do not wait."""
    order = tmp_path / "order"
    meet = f"until [ -e {tmp_path}/met ]; do sleep 0.05; done; echo first >> {order}; exit {code}"
    steps = [
        Step("first", ["sh", "-c", meet], "", beside=True),
        Step("second", ["sh", "-c", f"echo second >> {order}"], "", beside=True, after="first"),
        Step("third", ["sh", "-c", f"echo third >> {order}"], "", after="second"),
        Step("last", ["true"], ""),
    ]
    between = Step("between", ["sh", "-c", f"echo between >> {order}; touch {tmp_path}/met"], "")
    rows = Runner().run_all([*steps[:2], between, *steps[2:]])
    assert ["between", "first", "second", "third"] == order.read_text().split()
    of_first = "FAILED (1)" if code else "passed"
    assert [of_first, "passed", "passed", "passed", "passed"] == [row.result for row in rows]


def test_a_step_after_one_that_was_left_out_waits_for_nobody():
    assert ["passed"] == [row.result for row in Runner().run_all([Step("it", ["true"], "", after="left-out")])]


def test_a_humble_step_takes_the_time_that_nobody_wants():
    """Among its own session's processes, and as a session where the kernel tells sessions apart."""
    look = "import os, pathlib; group = pathlib.Path('/proc/self/autogroup'); print(os.nice(0), end=' '); "
    look += "print(group.read_text().split()[-1] if group.exists() else 19)"
    steps = [Step("it", [sys.executable, "-c", look], "", humble=humble) for humble in (True, False)]
    for step in steps:
        assert "passed" == Runner().run(step).result
        expected = "19 19" if step.humble else f"{os.nice(0)} "
        assert (run.LOGS / "it.log").read_text().startswith(expected)


WAITS = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1], os.environ["READYGATE_TEST_STEP"]).touch()
time.sleep(300)
"""


def test_an_interrupt_reaches_the_steps_beside_others_too_and_who_waits_for_them_never_begins(tmp_path):
    program = f"""
import sys
from tools import run
run.LOGS = run.Path({str(tmp_path)!r})
waits = [sys.executable, "-c", {WAITS!r}, {str(tmp_path)!r}]  # a shell loses a signal just before it executes a program
later = run.Step("later", waits, "", beside=True, after="long")
run.SELECTIONS["fast"] = [run.Step("long", waits, "", beside=True), later, run.Step("short", waits, "")]
sys.exit(run.main(["fast"]))
"""
    child = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    begun = {f"{child.pid}-long", f"{child.pid}-short"}
    assert wait_for(lambda: begun <= {file.name for file in tmp_path.iterdir()}, timeout_s=60)
    child.send_signal(signal.SIGTERM)
    out = child.communicate(timeout=60)[0]
    assert 130 == child.returncode
    table = {line.split()[0]: line.split()[1] for line in out[out.index("\nstep ") :].splitlines()[2:5]}
    assert {"long": "INTERRUPTED", "later": "NOT", "short": "INTERRUPTED"} == table
    assert not (tmp_path / f"{child.pid}-later").exists()


def test_an_obstacle_is_told_before_the_first_step(monkeypatch, capsys):
    monkeypatch.setitem(run.OBSTACLES, "all", lambda: ["no room"])
    monkeypatch.setitem(run.SELECTIONS, "all", [Step("never", ["false"], "")])
    assert run.main(["all"]) == run.EXIT_OBSTACLE
    assert "cannot run: no room\n" == capsys.readouterr().out


def as_ordinary_user(monkeypatch: pytest.MonkeyPatch, *, ci: str) -> None:
    monkeypatch.setattr(obstacles.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(obstacles, "disk_space", lambda **_: [])
    monkeypatch.setitem(run.OBSTACLES, "all", list)
    monkeypatch.setenv("CI", ci)
    others = [Step("rings-0-1", ["true"], ""), Step("ring-2", ["true"], "")]
    needs_root = [replace(step, command=["false"], needs="") for step in run.CAN_BE_LEFT_OUT[0]]
    monkeypatch.setitem(run.SELECTIONS, "all", [needs_root[0], *others, *needs_root[1:]])


def test_an_ordinary_user_runs_the_other_rings_and_is_told_what_was_left_out(monkeypatch, capsys):
    as_ordinary_user(monkeypatch, ci="")
    assert run.main(["all"]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    why = "ring 3 needs root, it boots systemd hosts: sudo make test"
    assert f"packages, archive, arm64, ring-3, ring-3-service left out, the rest is run: {why}" == first
    assert "2 passed, 0 failed, 5 left out" == last


def test_what_is_left_out_hides_no_failure(monkeypatch, capsys):
    as_ordinary_user(monkeypatch, ci="")
    run.SELECTIONS["all"].append(Step("fails", ["false"], ""))
    assert run.main(["all"]) == 1
    table = {line.split()[0]: line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()[-10:-2]}
    assert table["fails"].startswith("FAILED (1)")
    assert table["ring-3"].startswith("LEFT OUT")
    assert table["ring-3"].endswith("sudo make test")


@pytest.mark.parametrize("ci", ["true", "1"])
def test_where_ci_is_set_nothing_is_left_out(monkeypatch, capsys, ci):
    as_ordinary_user(monkeypatch, ci=ci)
    assert run.main(["all"]) == run.EXIT_OBSTACLE
    assert "cannot run: ring 3 needs root, it boots systemd hosts: sudo make test\n" == capsys.readouterr().out


@pytest.mark.parametrize("selection", ["hosts", "controls", "ipv6", "policy", "kills", "chart"])
def test_a_ring_called_for_by_its_name_is_not_left_out(monkeypatch, capsys, selection):
    as_ordinary_user(monkeypatch, ci="")
    assert run.main([selection]) == run.EXIT_OBSTACLE
    assert "cannot run: ring 3 needs root" in capsys.readouterr().out


def test_a_run_as_root_has_every_step_of_every_ring():
    names = [step.name for step in run.SELECTIONS["all"]]
    rings = {
        "ruff",
        "format",
        "mypy",
        "imports",
        "playbooks",
        "differential",
        "rings-0-1",
        "archive",
        "arm64",
        "ring-2",
        "ring-3",
        "ring-3-service",
    }
    assert rings <= set(names)
    assert len(names) == len(set(names))


def test_what_one_step_of_ring_3_ignores_another_one_runs():
    def ignored(words: list[str]) -> set[str]:
        return {word.removeprefix("--ignore=") for word in words if word.startswith("--ignore=")}

    elsewhere = {run.THREE_CONTROLS, run.IPV6_ALONE, run.CHART, run.EMULATED, *run.WITHOUT_HOSTS}
    assert {run.DEPLOYMENT, *elsewhere} == ignored(run.SERVICE.command)
    assert {*run.SURVIVAL, run.POLICY} == ignored(run.RING_3.command)
    assert "tests/hosts" in run.SERVICE.command
    assert run.DEPLOYMENT in run.RING_3.command
    assert {run.EMULATED, *run.WITHOUT_HOSTS} <= {*run.ARCHIVE.command, *run.ARM64.command}
    assert all((ROOT / path).exists() for path in ignored([*run.SERVICE.command, *run.RING_3.command]))
    parts = {step.name for step in (run.ARCHIVE, run.ARM64, run.RING_3, run.SERVICE)}
    assert parts <= {one.name for one in run.SELECTIONS["hosts"]} & {one.name for one in run.SELECTIONS["all"]}


def test_the_two_parts_of_ring_3_have_hosts_of_their_own_whatever_the_environment_says():
    assert {"hosts", "second"} == {(step.environ or {})[run.SET_VARIABLE] for step in (run.RING_3, run.SERVICE)}


@pytest.mark.parametrize("selection", sorted(run.SELECTIONS))
def test_what_a_step_waits_for_comes_before_it(selection):
    names = [step.name for step in run.SELECTIONS[selection]]
    for number, step in enumerate(run.SELECTIONS[selection]):
        assert {step.needs, step.after} - {""} <= {*names[:number]}, step.name


def test_a_ring_named_by_its_command_is_a_ring_with_its_obstacles():
    assert {"plane", "hosts", "controls", "ipv6", "policy", "kills", "chart", "all"} == set(run.OBSTACLES)
    assert set(run.OBSTACLES) <= set(run.SELECTIONS)
    assert os.environ.get(run.STEP_VARIABLE) != ""
