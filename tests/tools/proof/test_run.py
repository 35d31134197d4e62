"""`make test` as a person meets it: lanes, interrupts, what was left out, and no process left behind."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tools import run
from tools.kit.pid import ProcessId
from tools.kit.waiting import PATIENT_S, wait_for
from tools.proof import steps
from tools.proof.runner import Row, Runner
from tools.proof.steps import SELECTIONS, Selection, Step
from tools.testbed.shared import obstacles

ROOT = Path(__file__).resolve().parents[3]
TESTS = """
import pathlib, time
def test_that_fails():
    assert "what was wanted" == "what was there"
def test_that_hangs():
    pathlib.Path(__file__).with_name("hangs").touch()
    time.sleep(300)
"""
# `python -m tools.run fast` with other steps.
PROGRAM = """
import pathlib, sys
from tools import run
from tools.proof import table
from tools.proof.steps import Selection, Step
run.LOGS, table.RESULT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[1], "durations.json")
{steps}
run.SELECTIONS["fast"] = {selection}
sys.exit(run.main(["fast"]))
"""


@pytest.fixture(autouse=True)
def _own_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "LOGS", tmp_path)
    monkeypatch.setattr(run.table, "RESULT", tmp_path / "durations.json")


def play(tmp_path: Path, *prepare: Step, lanes: tuple[tuple[Step, ...], ...] = ()) -> list[Row]:
    return Runner(logs=tmp_path).run_all(Selection(prepare, lanes))


def shell(name: str, script: str, needs: str = "") -> Step:
    return Step(name, ("sh", "-c", script), "a shell", needs)


def results(output: str) -> dict[str, str]:
    """The second column of the closing table, by the first."""
    table = output[output.index("\nstep ") :].split("\n\n")[0].splitlines()[2:]
    return {line.split()[0]: line.split()[1] for line in table}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_an_interrupted_run_reports_what_failed_until_then(tmp_path, number):
    tests = tmp_path / "test_some.py"
    tests.write_text(TESTS)
    parts = f"""
command = (sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", {str(tests)!r})
tests, later = Step("tests", command, "some tests"), Step("later", ("true",), "never comes")
"""
    program = PROGRAM.format(steps=parts, selection="Selection((tests, later))")
    argv = [sys.executable, "-c", program, str(tmp_path)]
    child = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert wait_for((tmp_path / "hangs").exists, timeout_s=2 * PATIENT_S)
    child.send_signal(number)
    output = child.communicate(timeout=60)[0]
    assert 130 == child.returncode
    assert "what was there" in output, "pytest's failure section"
    assert output.endswith("\n0 passed, 1 failed, 1 skipped\n")
    assert {"tests": "INTERRUPTED", "later": "NOT"} == results(output)


def test_a_process_that_a_failed_step_leaves_is_ended_and_reported(tmp_path, capsys):
    # It ends when the other has become what it will be called: before, it is one more shell.
    leaving = "sleep 300 >/dev/null 2>&1 & until grep -qx sleep /proc/$!/comm; do :; done; echo pid $!; exit 1"
    [row] = play(tmp_path, shell("leaving", leaving))
    assert ("FAILED (1)", "left 1 processes") == (row.result, row.note)
    output = capsys.readouterr().out
    assert "== leaving left a process, now ended: sleep 300" in output
    assert ProcessId.of(int(output.split("pid ")[1].split()[0])) is None


def test_a_step_that_leaves_its_output_open_blocks_nothing(tmp_path, capsys):
    [row] = play(tmp_path, shell("open", "sleep 300 & echo said"))
    assert "passed" == row.result
    assert "said" in capsys.readouterr().out


def test_only_steps_that_need_a_failed_one_are_not_run(tmp_path):
    rows = play(
        tmp_path,
        shell("first", "false"),
        shell("second", "true", needs="first"),
        lanes=((shell("third", "true"), shell("fourth", "true", needs="first")), (shell("fifth", "true"),)),
    )
    assert ["FAILED (1)", "NOT RUN", "passed", "NOT RUN", "passed"] == [row.result for row in rows]


def test_a_step_that_cannot_be_started_has_failed_and_the_others_run(tmp_path):
    rows = play(
        tmp_path, lanes=((Step("gone", ("/no/such/program",), ""), shell("next", "true")), (shell("a", "true"),))
    )
    assert ["FAILED (start)", "passed", "passed"] == [row.result for row in rows]
    assert "/no/such/program: No such file or directory" == rows[0].note


def test_a_failed_test_is_not_run_again(tmp_path):
    count = tmp_path / "count"
    rows = play(tmp_path, lanes=((shell("once", f"echo run >> {count}; exit 1"),), (shell("other", "true"),)))
    assert (["FAILED (1)", "passed"], ["run"]) == ([row.result for row in rows], count.read_text().split())


def test_lanes_run_side_by_side_and_the_output_of_a_step_is_printed_as_a_whole(tmp_path, capsys):
    met, long = tmp_path / "met", tmp_path / "long"
    waits = f"echo one; touch {long}; until [ -e {met} ]; do sleep 0.05; done; echo two; exit 3"
    meets = f"until [ -e {long} ]; do sleep 0.05; done; echo between; touch {met}"
    rows = play(tmp_path, lanes=((shell("long", waits), shell("next", "true")), (shell("short", meets),)))
    assert ["FAILED (3)", "passed", "passed"] == [row.result for row in rows]
    assert "== output of long\none\ntwo\n== end of long\n" in capsys.readouterr().out
    assert "one\ntwo\n" == (tmp_path / "long.log").read_text()


def test_the_processor_seconds_of_a_step_are_those_of_its_children_too(tmp_path):
    compute = f"{sys.executable} -c 'sum(range(10_000_000))'"
    [row] = play(tmp_path, shell("computes", compute))
    assert row.processor_s >= 0.05


def test_a_step_has_the_processor_seconds_of_hosts_that_its_tests_saw(tmp_path):
    row = {"test": "a", "step": "ring-3", "ring": 3, "wall_s": 9.0, "processor_s": 7.0, "causes_s": {}}
    (folder := tmp_path / "durations").mkdir()
    (folder / "1.jsonl").write_text(f"{json.dumps(row)}\n" * 2)
    rows = run.record(folder, [Row("ring-3", "passed", 9.0, 3.0), Row("ruff", "passed", 1.0, 1.0)])
    assert [14.0, 1.0] == [row.processor_s for row in rows]
    assert [14.0, 1.0] == [step["processor_s"] for step in json.loads(run.table.RESULT.read_text())["steps"]]


def test_what_a_killed_run_with_the_same_process_id_recorded_is_not_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "DURATIONS", tmp_path / "durations")
    monkeypatch.setitem(SELECTIONS, "lint", Selection((shell("ruff", "true"),)))
    (left := tmp_path / "durations" / f"run-{os.getpid()}").mkdir(parents=True)
    (left / "1.jsonl").write_text(f"{json.dumps({'test': 'a', 'step': 'ruff', 'processor_s': 99.0})}\n")
    assert run.main(["lint"]) == 0
    assert [] == json.loads(run.table.RESULT.read_text())["tests"]


def test_a_humble_step_has_the_lowest_priority(tmp_path):
    """Among its own session's processes, and as a session where the kernel shares time out by sessions."""
    look = "import os, pathlib; group = pathlib.Path('/proc/self/autogroup'); print(os.nice(0), end=' '); "
    look += "print(group.read_text().split()[-1] if group.exists() else 19)"
    for humble, expected in ((True, "19 19"), (False, f"{os.nice(0)} ")):
        play(tmp_path, Step("it", (sys.executable, "-c", look), "", humble=humble))
        assert (tmp_path / "it.log").read_text().startswith(expected)


def test_an_interrupt_reaches_every_lane_and_lets_no_step_begin(tmp_path):
    # A shell loses a signal just before it executes a program.
    parts = f"""
look = '''import os, pathlib, time
pathlib.Path({str(tmp_path)!r}, os.environ["READYGATE_TEST_STEP"]).touch()
time.sleep(300)'''
long, later, short = (Step(name, (sys.executable, "-c", look), "") for name in ("long", "later", "short"))
"""
    program = PROGRAM.format(steps=parts, selection="Selection(lanes=((long, later), (short,)))")
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    begun = {f"{child.pid}-long", f"{child.pid}-short"}
    assert wait_for(lambda: begun <= {file.name for file in tmp_path.iterdir()}, timeout_s=2 * PATIENT_S)
    child.send_signal(signal.SIGTERM)
    output = child.communicate(timeout=60)[0]
    assert 130 == child.returncode
    assert {"long": "INTERRUPTED", "later": "NOT", "short": "INTERRUPTED"} == results(output)
    assert not (tmp_path / f"{child.pid}-later").exists()


def test_an_obstacle_is_reported_before_the_first_step(monkeypatch, capsys):
    monkeypatch.setitem(SELECTIONS, "plane", Selection((shell("never", "false"),), obstacles=lambda: ["no room"]))
    assert run.main(["plane"]) == run.EXIT_OBSTACLE
    assert "cannot run: no room\n" == capsys.readouterr().out


def as_ordinary_user(monkeypatch: pytest.MonkeyPatch, *more: Step, ci: str) -> None:
    monkeypatch.setattr(obstacles.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(obstacles, "disk_space", lambda **_: [])
    monkeypatch.setenv("CI", ci)

    def stand_in(step: Step) -> Step:
        return replace(step, command=("false",) if step.root else ("true",), folder=".", humble=False)

    lanes = tuple(tuple(map(stand_in, lane)) for lane in steps.GATE.lanes)
    gate = Selection(tuple(map(stand_in, steps.GATE.prepare)), (*lanes, *([more] if more else [])))
    monkeypatch.setitem(SELECTIONS, "gate", gate)


def test_an_ordinary_user_runs_the_other_rings_and_reads_what_was_left_out(monkeypatch, capsys):
    as_ordinary_user(monkeypatch, ci="")
    assert run.main(["gate"]) == 0
    output = capsys.readouterr().out
    names = [step.name for step in steps.GATE.steps if step.root]
    why = "ring 3 needs root, it boots systemd hosts: sudo make test"
    assert f"{', '.join(names)} left out, the rest is run: {why}" == output.splitlines()[0]
    assert output.endswith(f"0 failed, {len(names)} left out\n")
    assert {"LEFT"} == {results(output)[name] for name in names}


def test_what_is_left_out_hides_no_failure(monkeypatch, capsys):
    as_ordinary_user(monkeypatch, shell("fails", "exit 1"), ci="")
    assert run.main(["gate"]) == 1
    found = results(capsys.readouterr().out)
    assert ("FAILED", "LEFT") == (found["fails"], found["ring-3"])


@pytest.mark.parametrize("ci", ["true", "1"])
def test_where_ci_is_set_nothing_is_left_out(monkeypatch, capsys, ci):
    as_ordinary_user(monkeypatch, ci=ci)
    assert run.main(["gate"]) == run.EXIT_OBSTACLE
    assert "cannot run: ring 3 needs root, it boots systemd hosts: sudo make test\n" == capsys.readouterr().out


@pytest.mark.parametrize("selection", ["hosts", "controls", "ipv6", "policy", "kills", "chart"])
def test_a_ring_asked_for_by_name_is_not_left_out(monkeypatch, capsys, selection):
    as_ordinary_user(monkeypatch, ci="")
    assert run.main([selection]) == run.EXIT_OBSTACLE
    assert "cannot run: ring 3 needs root" in capsys.readouterr().out


# The selections


@pytest.mark.parametrize("selection", sorted(SELECTIONS))
def test_each_step_has_a_name_of_its_own_and_what_it_needs_comes_first(selection):
    chosen = SELECTIONS[selection]
    names = [step.name for step in chosen.steps]
    assert len(names) == len(set(names))
    prepared = {step.name for step in chosen.prepare}
    assert {step.needs for lane in chosen.lanes for step in lane} - {""} <= prepared


@pytest.mark.parametrize("selection", ["gate", "whole", "hosts"])
def test_lanes_of_hosts_have_a_set_of_hosts_each(selection):
    sets = [{step.environ.get(steps.SET_VARIABLE) for step in lane} - {None} for lane in SELECTIONS[selection].lanes]
    used = [name for lane in sets for name in lane]
    assert len(used) == len(set(used))


def paths(step: Step) -> tuple[set[str], set[str]]:
    """The tests that a step of pytest runs and ignores, as paths."""
    ignored = {word.removeprefix("--ignore=") for word in step.command if word.startswith("--ignore=")}
    return {word for word in step.command if word.split("/")[0] == "tests"}, ignored


def test_the_whole_proof_runs_every_test_file_and_leaves_none_out():
    found = [paths(step) for step in steps.WHOLE.steps if step.pytest]
    assert not any("--gate" in step.command for step in steps.WHOLE.steps)

    def runs(test: str) -> bool:
        parents = {test, *map(str, Path(test).parents)}
        return any(parents & chosen and not parents & ignored for chosen, ignored in found)

    tests = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]
    assert [] == [test for test in tests if not runs(test)]


def test_the_gate_runs_every_ring_and_leaves_tests_out_by_the_list_alone():
    names = {step.name for step in steps.GATE.steps}
    assert {"mypy", "differential", "ring-0", "ring-1", "ring-2", "ring-3", "archive"} <= names
    assert all("--gate" in step.command for step in steps.GATE.steps if step.pytest)


def test_each_path_that_a_step_names_exists():
    named = {path for step in steps.WHOLE.steps for group in paths(step) for path in group}
    assert [] == [path for path in sorted(named) if not (ROOT / path).exists()]
