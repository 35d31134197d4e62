"""The testbed's command line, as CONTRIBUTING.md shows it, beside whatever else this machine runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def testbed(tmp_path_factory):
    """Runs `python -m tests.testbed WORDS` with a testbed folder of its own: (exit code, output)."""
    environ = {**os.environ, "READYGATE_TESTBED_DIR": str(tmp_path_factory.mktemp("testbed"))}

    def run(*words):
        argv = [sys.executable, "-m", "tests.testbed", *words]
        done = subprocess.run(argv, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=110)
        return done.returncode, done.stdout + done.stderr

    yield run
    run("--ring", "plane", "down")


def test_up_kubectl_and_down(testbed):
    assert testbed("--ring", "plane", "up")[0] == 0
    assert testbed("kubectl", "get", "nodes") == (0, "No resources found\n")
    assert testbed("kubectl", "auth", "can-i", "create", "pods") == (0, "yes\n")
    assert testbed("--ring", "plane", "down")[0] == 0
    assert testbed("--ring", "plane", "status")[0] == 3
