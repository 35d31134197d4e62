"""`make demo STAY=0`: every step is seen, the table closes it; however it ends, nothing stays behind."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.kit.ability import cannot_run
from tools.kit.pid import end_all, find_processes
from tools.kit.whole import run_whole

ROOT = Path(__file__).resolve().parents[2]
STEPS = 14


def left_in(folder: Path) -> list[str]:
    """Files anywhere below it; empty folders do not count."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


@pytest.mark.timeout(600)
def test_every_step_of_the_demo_is_seen_and_nothing_is_left(artefacts, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "60")
    done = run_whole(["make", "demo", "STAY=0"], cwd=ROOT, timeout_s=560)
    (artefacts / "demo.txt").write_text(done.stdout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    rows = re.findall(r"^ (\d+)\. .*\d\.\d$", done.stdout, re.MULTILINE)
    assert sorted({int(row) for row in rows}) == list(range(1, STEPS + 1))
    assert "Every step was seen" in done.stdout
    assert [] == [line for line in done.stdout.splitlines() if len(line) > 60 and "/" not in line]
    said = " ".join(done.stdout.replace("|", " ").split())
    assert re.search(r"node-2: CheckFailed: cni: failed since \S+ plugin bridge: .* is not executable", said)
    assert re.search(r"node-3: CheckFailed: dns: failed since \S+ dial tcp \S+ connect: connection refused", said)
    assert left_in(tmp_path) == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("moment", "number"),
    [
        pytest.param("A control plane starts", signal.SIGINT, id="Ctrl-C while the control plane starts"),
        pytest.param("Three agents start", signal.SIGTERM, id="a kill while agents start"),
        pytest.param("The extender starts", signal.SIGINT, id="Ctrl-C while the extender starts"),
        pytest.param("Deployment web asks", signal.SIGHUP, id="a closed terminal in its midst"),
        pytest.param("Deployment web asks", signal.SIGQUIT, id="Ctrl-backslash in its midst"),
    ],
)
def test_a_person_ends_everything_at_any_moment(tmp_path, moment, number):
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    # A shell's background job ignores SIGQUIT, and so would whatever it starts.
    argv = ["env", "--default-signal", sys.executable, "-m", "tools.demo", "--stay", "0"]
    demo = subprocess.Popen(
        argv, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    assert demo.stdout is not None
    said = ""
    try:
        for line in demo.stdout:
            said += line
            if moment in line:
                break
        demo.stdout.close()  # as a terminal does: from here on each write fails
        os.killpg(demo.pid, number)
        assert demo.wait(180) != 0
    finally:
        left = find_processes(lambda _, environ: any(os.fsencode(tmp_path) in each for each in environ))
        end_all(left)
    assert moment in said
    assert left == []
    assert left_in(tmp_path) == []


def test_a_wish_it_does_not_know_is_refused_in_one_line():
    # As from a shell: within `make test` this make would say which directory it enters.
    shell = ["env", "-u", "MAKELEVEL", "-u", "MAKEFLAGS"]
    done = run_whole([*shell, "make", "demo", "STAY=x"], cwd=ROOT, timeout_s=30)
    assert done.returncode == 2
    (line,) = (done.stdout + done.stderr).splitlines()
    assert line.endswith("STAY=x is not known: 0 exits at the end, 1 stays up for you to try.  Stop.")


@pytest.mark.timeout(600)
def test_a_full_disk_is_named(tmp_path):
    """The run's folder is on a file system of 2 MiB."""
    if os.geteuid() != 0:
        cannot_run("a full disk is made by mounting a small file system, which only root may: sudo make test")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", tmp_path], check=True)
    try:
        argv = ["env", f"READYGATE_TESTBED_DIR={tmp_path}", sys.executable, "-m", "tools.demo", "--stay", "0"]
        done = run_whole(argv, cwd=ROOT, timeout_s=400)
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert done.returncode == 1, done.stdout[-2000:]
    assert f"{tmp_path}/planes has 0.00 GiB free" in " ".join(done.stdout.split())
    assert "step" not in done.stdout, "no empty table"
