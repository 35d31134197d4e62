"""What a process id is worth."""

import os
import subprocess
import sys
import threading
from dataclasses import replace

from tools.kit.pid import ProcessId, find_processes, words
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


def test_a_process_that_is_about_to_be_another_program_is_waited_for(tmp_path):
    """Its files are empty for a moment, and its parent knows already that it runs."""
    for name in ("cmdline", "environ"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "exe").symlink_to(sys.executable)
    shown = threading.Timer(0.2, (tmp_path / "environ").write_bytes, [b"A=1\0"])
    shown.start()
    assert b"A=1" in words(tmp_path)[1]
    shown.join()


def test_a_process_of_the_kernel_is_not(tmp_path):
    for name in ("cmdline", "environ"):
        (tmp_path / name).write_bytes(b"")
    assert ([b""], [b""]) == words(tmp_path)
