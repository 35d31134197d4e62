"""What sets a machine up, ended by a person while it works: one line, no process, no file that is half there.

The tools that it calls are scripts: each starts another process, as compilers and package managers do, and never ends.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.kit.pid import end_all, find_processes
from tools.kit.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
ENDED = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
# Begins its work where it is told to or stands, in the cache or among temporary files.
TOOL = """#!/bin/sh
case "$*" in
  version) echo go version go1.99.0 linux/amd64; exit ;;
esac
for word in "$PWD" "$@"; do
  case "$word" in "$XDG_CACHE_HOME"/* | "$TMPDIR"/*) mkdir -p "$word" && echo half > "$word/half-made" ;; esac
done
sleep 300 &
touch "$BEGUN"
wait
"""
PIP = """
import os, subprocess, sys
subprocess.run(["sh", os.environ["TOOL"], *sys.argv[1:]])
"""
PROGRAMS = {
    "the image": ["images.build"],
    "the record of its packages": ["images.debian"],
    "Kubernetes": ["tools.testbed.shared.binaries"],
    "what Kubernetes is built of": ["tools.testbed.shared.binaries", "--fetch"],
    "helm and the like": ["tools.testbed.shared.tools", "kustomize"],
    "the oldest Ansible": ["tools.testbed.shared.oldest_ansible"],
}


@pytest.fixture
def machine(tmp_path):
    """Its environment: a cache and a folder for temporary files of its own, tools that never end."""
    for name in ("cache", "tmp", "bin", "modules/pip"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("mmdebstrap", "go"):
        (tmp_path / "bin" / name).write_text(TOOL)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "modules" / "pip" / "__init__.py").touch()
    (tmp_path / "modules" / "pip" / "__main__.py").write_text(PIP)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("READYGATE_KUBE")}
    yield environ | {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path / "tmp"),
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(tmp_path / "modules"),
        "BEGUN": str(tmp_path / "begun"),
        "TOOL": str(tmp_path / "bin" / "go"),
    }
    end_all(processes_of(tmp_path))


def processes_of(folder: Path):
    return find_processes(lambda _, environ: any(os.fsencode(folder) in each for each in environ))


def left_in(folder: Path) -> list[str]:
    """But for locks, and logs, which are written anew each time."""
    found = (path for path in folder.rglob("*") if not path.is_dir() or path.name.endswith(".part"))
    return sorted(str(path.relative_to(folder)) for path in found if path.suffix not in {".lock", ".log"})


@pytest.mark.parametrize("number", ENDED, ids=lambda number: number.name)
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_set_up_ends_with_all_that_it_has_begun(machine, tmp_path, program, number):
    argv = [sys.executable, "-m", *PROGRAMS[program]]
    running = subprocess.Popen(
        argv, cwd=ROOT, env=machine, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert wait_for(lambda: Path(machine["BEGUN"]).exists() or running.poll() is not None, timeout_s=60)
        assert running.poll() is None, running.communicate()
        running.send_signal(number)  # to it alone: who ends it need not know what it has started
        said, complaint = running.communicate(timeout=60)
    finally:
        running.kill()
    assert (130, "interrupted\n", False) == (running.returncode, complaint, "Traceback" in said)
    assert wait_for(lambda: not processes_of(tmp_path), timeout_s=30), "what it had started has ended"
    assert ([], []) == (left_in(tmp_path / "cache"), left_in(tmp_path / "tmp"))
