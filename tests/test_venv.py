"""`scripts/venv` interrupted while pip works: nothing of it goes on."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.kit.pid import ProcessId
from tests.kit.waiting import wait_until

ROOT = Path(__file__).resolve().parents[1]
# Makes a .venv whose pip never ends.
PYTHON = """\
#!/bin/sh
case "$*" in
  "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  *"pip install"*) echo $$ > pip.pid; exec sleep 300 ;;
  --version|-VV) echo Python 3.11.0 ;;
esac
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_pip_ends_with_the_script_that_started_it(tmp_path, number):
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/venv", tmp_path / "scripts/venv")
    for name in ("pyproject.toml", "requirements.lock", "requirements-run.lock"):
        shutil.copy(ROOT / name, tmp_path / name)
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    environ = {**os.environ, "PYTHON": str(python)}
    script = subprocess.Popen(["scripts/venv"], cwd=tmp_path, env=environ, start_new_session=True)
    pid = tmp_path / "pip.pid"
    try:
        wait_until(lambda: pid.exists() and pid.read_text().strip(), "pip is started", timeout_s=30.0)
        pip = ProcessId.of(int(pid.read_text()))
        assert pip is not None
        os.killpg(script.pid, number)
        assert script.wait(timeout=30) in {130, 143}
        wait_until(lambda: not pip.alive(), "pip has ended", timeout_s=30.0)
    finally:
        if script.poll() is None:
            os.killpg(script.pid, signal.SIGKILL)
