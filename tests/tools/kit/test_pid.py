"""What a process id is worth."""

import os
import subprocess
import sys
from dataclasses import replace

from tools.kit.pid import ProcessId, find_processes
from tools.kit.waiting import wait_for


def test_a_process_is_alive_while_it_runs_and_never_after():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = ProcessId.of(child.pid)
    assert process.alive()
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not process.alive(), "a zombie"
    child.wait()
    assert not process.alive()


def test_a_process_id_used_again_is_another_process():
    mine = ProcessId.of(os.getpid())
    assert not replace(mine, start_ticks=mine.start_ticks - 1).alive()


def test_a_process_is_found_by_its_command_line_and_by_its_environment():
    argv = [sys.executable, "-c", "input()", "a-word-of-its-own"]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, env={**os.environ, "A_NAME_OF_ITS_OWN": "yes"})
    # The kernel lets the parent go on just before it shows the new command line and environment.
    by_command = wait_for(
        lambda: find_processes(lambda command, _: command[-2:-1] == [b"a-word-of-its-own"]), timeout_s=30
    )
    by_environ = wait_for(lambda: find_processes(lambda _, environ: b"A_NAME_OF_ITS_OWN=yes" in environ), timeout_s=30)
    expected = [ProcessId.of(child.pid)]
    child.communicate()
    assert (expected, expected) == (by_command, by_environ)
