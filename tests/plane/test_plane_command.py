"""The testbed's command line, as CONTRIBUTING.md shows it, beside whatever else this machine runs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.kit.pid import end_all, find_processes
from tools.kit.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def testbed(tmp_path_factory):
    """Runs `python -m tools.testbed WORDS` with a testbed folder of its own: (exit code, output)."""
    environ = {**os.environ, "READYGATE_TESTBED_DIR": str(tmp_path_factory.mktemp("testbed"))}

    def run(*words):
        argv = [sys.executable, "-m", "tools.testbed", *words]
        done = subprocess.run(argv, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=280)
        return done.returncode, done.stdout + done.stderr

    yield run
    run("--ring", "plane", "down")


def test_up_kubectl_and_down(testbed):
    assert testbed("--ring", "plane", "up")[0] == 0
    assert testbed("kubectl", "get", "nodes") == (0, "No resources found\n")
    assert testbed("kubectl", "auth", "can-i", "create", "pods") == (0, "yes\n")
    assert testbed("--ring", "plane", "down")[0] == 0
    assert testbed("--ring", "plane", "status")[0] == 3


@pytest.mark.timeout(600)
def test_a_terminal_closed_during_up_leaves_nothing(tmp_path):
    """A plane that stands outlives the command; one that is being made does not."""
    environ = {**os.environ, "READYGATE_TESTBED_DIR": str(tmp_path)}
    argv = [sys.executable, "-m", "tools.testbed", "--ring", "plane", "up"]

    def running():
        return find_processes(
            lambda command, environ: (
                any(os.fsencode(tmp_path) in each for each in environ)
                and command[0].endswith((b"etcd", b"kube-apiserver"))
            )
        )

    up = subprocess.Popen(argv, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert wait_for(running, timeout_s=120)
        up.send_signal(signal.SIGHUP)
        assert up.wait(120) == 130
    finally:
        up.kill()
        left = running()
        end_all(left)
    assert left == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
