"""`scripts/venv` interrupted while pip works: nothing of it goes on. What it upgrades on the machine it says before."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tools.kit.pid import ProcessId
from tools.kit.waiting import wait_until

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


def copied(folder: Path, program: str) -> dict[str, str]:
    """What the script needs, in a folder of its own with this Python; its environment."""
    (folder / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/venv", folder / "scripts/venv")
    for name in ("pyproject.toml", "requirements.lock", "requirements-run.lock"):
        shutil.copy(ROOT / name, folder / name)
    executable(folder / "python", program)
    return {**os.environ, "PYTHON": str(folder / "python")}


def executable(path: Path, program: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(program)
    path.chmod(0o755)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_pip_ends_with_the_script_that_started_it(tmp_path, number):
    environ = copied(tmp_path, PYTHON)
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


# Its venv module is missing until apt-get has installed it; then its pip fails.
BARE_PYTHON = """\
#!/bin/sh
case "$*" in
  *ensurepip*) [ -e apt-installed ] ;;
  *"pip install"*) exit 1 ;;
  "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  --version|-VV) echo Python 3.11.0 ;;
esac
"""
APT_GET = """\
#!/bin/sh
case "$*" in
  *--simulate*) cat simulated ;;
  install*) touch apt-installed ;;
esac
"""
NEW = "Inst python3-venv (3.11.2-1+b1 Debian:12 [amd64])\n"
OLDER = "Inst python3.11 [3.11.2-6] (3.11.2-7 Debian:12 [amd64]) []\nInst libc6 [2.36-9] (2.36-10 Debian:12 [amd64])\n"
SAID = "python3-venv depends on: python3.11 3.11.2-6 -> 3.11.2-7, libc6 2.36-9 -> 2.36-10"


@pytest.mark.parametrize(
    ("simulated", "upgrades", "installed", "said"),
    [
        pytest.param(NEW, "", True, [False, False], id="nothing is upgraded"),
        pytest.param(NEW, "no", True, [False, False], id="nothing is upgraded, and nothing may be"),
        pytest.param(OLDER + NEW, "", True, [True, False], id="what is upgraded is said before"),
        pytest.param(OLDER + NEW, "no", False, [True, True], id="who forbids it keeps what is installed"),
    ],
)
def test_no_package_of_the_machine_is_upgraded_without_a_word(tmp_path, simulated, upgrades, installed, said):
    environ = copied(tmp_path, BARE_PYTHON) | {"READYGATE_UPGRADES": upgrades}
    executable(tmp_path / "bin/apt-get", APT_GET)
    executable(tmp_path / "bin/id", "#!/bin/sh\necho 0\n")
    environ["PATH"] = f"{tmp_path / 'bin'}:{environ['PATH']}"
    (tmp_path / "simulated").write_text(simulated)
    done = subprocess.run(
        ["scripts/venv"], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    words = done.stdout + done.stderr
    assert installed == (tmp_path / "apt-installed").exists()
    assert said == [SAID in words, "READYGATE_UPGRADES=no, so nothing was installed" in words]
    assert done.returncode == 2, "its pip fails, or it was refused"
