"""What a process has started ends when it is killed, but not what is to outlive it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.kit.child import Child
from tools.kit.guardian import CHILD_VARIABLE
from tools.kit.pid import ProcessId, children, end_all
from tools.kit.waiting import wait_for

ROOT = Path(__file__).parents[3]
# A child of a thread that has ended since, with a child of its own in another session; and one that survives. Their
# pids are told.
STARTS_CHILDREN = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tools.kit.child import Child
from tools.kit.pid import children
from tools.kit.waiting import wait_for

folder = Path(sys.argv[1])
guarded = Child("guarded", ["sh", "-c", "setsid sleep 60 & wait"], log=folder / "guarded.log")
survivor = Child("survivor", ["sleep", "60"], log=folder / "survivor.log", survives=True)
with ThreadPoolExecutor(1) as pool:
    pool.submit(guarded.start).result()
    pool.submit(survivor.start).result()
print(guarded.pid, wait_for(lambda: children(guarded.pid), timeout_s=20)[0], survivor.pid, flush=True)
sys.stdin.read()
"""


def ended(tmp_path: Path, how: str) -> list[ProcessId | None]:
    """What a process had started that is ended like that: its child, the child's child, and one that survives."""
    argv = [sys.executable, "-c", STARTS_CHILDREN, str(tmp_path)]
    # As if it were a child of somebody's itself: who survives has no mark of another's either.
    environ = {**os.environ, CHILD_VARIABLE: "1-1"}
    with subprocess.Popen(
        argv, cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        started = [ProcessId.of(int(pid)) for pid in parent.stdout.readline().split()]
        if how == "is killed":
            parent.send_signal(signal.SIGKILL)
    return started


@pytest.fixture(params=["is killed", "forgets them"])
def started(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[ProcessId]]:
    started = [process for process in ended(tmp_path, request.param) if process is not None]
    yield started
    end_all(started)


def test_what_a_process_had_started_ends_with_it_but_for_what_survives(started: list[ProcessId]):
    guarded, of_guarded, survivor = started
    assert wait_for(lambda: not (guarded.alive() or of_guarded.alive()), timeout_s=20)
    assert survivor.alive()
    environ = Path(f"/proc/{survivor.pid}/environ").read_bytes()
    assert CHILD_VARIABLE.encode() not in environ


def test_there_is_one_guardian_however_many_children_are_started_at_once(tmp_path: Path):
    made = [Child(f"child-{i}", ["sleep", "60"], log=tmp_path / f"{i}.log") for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(Child.start, made))
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children(os.getpid())]
    for child in made:
        child.kill()
    assert 1 == sum(b"tools.kit.guardian" in command for command in commands)
