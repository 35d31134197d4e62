"""Ends the children of a process when that has ended, however it has: also by SIGKILL, which no process can answer.

A process of its own, one for each process that starts children. They carry a mark in their environment, so that also
what they have started is found. The kernel's own signal at a parent's death would not do: it comes when the thread that
forked ends, to the child alone, and is taken away from one that becomes another user.
"""

import os
import select
import subprocess
import sys
import threading
from pathlib import Path

from tools.kit.pid import ProcessId
from tools.kit.whole import end_marked

CHILD_VARIABLE = "READYGATE_TEST_CHILD_OF"
_CHECKOUT = Path(__file__).resolve().parents[2]
_lock = threading.Lock()
_guarded: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}  # by process: after a fork it is another one


def mark_of_children() -> str:
    """What a child of this process is to have in CHILD_VARIABLE. From now on there is somebody who looks for it."""
    with _lock:
        pid = os.getpid()
        if pid not in _guarded:
            itself = ProcessId.of(pid)
            assert itself is not None
            mark = f"{pid}-{itself.start_ticks}"
            _guarded[pid] = mark, _start(pid, mark)
        return _guarded[pid][0]


def _start(pid: int, mark: str) -> subprocess.Popen[bytes]:
    """In a session and with an environment of its own: who ends all that a run has started leaves it alone."""
    return subprocess.Popen(
        [sys.executable, "-m", "tools.kit.guardian", str(pid), mark],
        cwd=_CHECKOUT,
        env={"PATH": os.environ.get("PATH", os.defpath)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def main(argv: list[str]) -> int:
    pid, mark = int(argv[0]), argv[1]
    try:
        guarded = os.pidfd_open(pid)
    except ProcessLookupError:
        guarded = None
    if guarded is not None and os.getppid() == pid:  # else it was sooner than we, and the number may be another's
        select.select([guarded], [], [])
    end_marked(mark, variable=CHILD_VARIABLE)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
