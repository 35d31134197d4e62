"""A command ends with all that it has started, and a program when its person says so, in whichever way."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.kit.endings import ENDINGS
from tools.kit.pid import ProcessId
from tools.kit.whole import run_whole

STARTS_ANOTHER = """
import subprocess, sys, time
child = subprocess.Popen(["sleep", "300"], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(child.pid, flush=True)
time.sleep(float(sys.argv[1]))
"""


def test_a_command_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path):
    with pytest.raises(AssertionError, match="has not ended after 5 s") as told:
        run_whole([sys.executable, "-c", STARTS_ANOTHER, "300"], timeout_s=5.0, cwd=tmp_path)
    assert ProcessId.of(int(str(told.value).split()[-1])) is None


def test_a_command_that_leaves_a_process_has_failed_and_the_process_is_ended(tmp_path: Path):
    with pytest.raises(AssertionError, match="left processes") as told:
        run_whole([sys.executable, "-c", STARTS_ANOTHER, "0"], timeout_s=60.0, cwd=tmp_path)
    assert "sleep 300" in str(told.value)


def test_a_command_that_leaves_nothing_gives_its_code_and_its_words(tmp_path: Path):
    done = run_whole([sys.executable, "-c", "print('said'); raise SystemExit(3)"], timeout_s=60.0, cwd=tmp_path)
    assert (3, "said\n", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("first", ENDINGS, ids=lambda number: number.name)
def test_the_first_of_any_ending_interrupts_and_the_others_do_not_cut_the_clearing_short(first):
    program = """
import os, signal, sys, time
for number in (signal.SIGHUP, signal.SIGQUIT):  # a background job of a shell ignores them
    signal.signal(number, signal.SIG_DFL)
from tools.kit.endings import ENDINGS, interrupt_once
interrupt_once()
try:
    os.kill(os.getpid(), int(sys.argv[1]))
    time.sleep(60)
except KeyboardInterrupt:
    for number in ENDINGS:
        os.kill(os.getpid(), number)
    print("cleared")
"""
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", program, str(int(first))], capture_output=True, text=True, timeout=100, cwd=root
    )
    assert (0, "cleared\n", "") == (done.returncode, done.stdout, done.stderr)
