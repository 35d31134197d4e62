"""A process that ends with whoever has started it."""

import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tools.kit.endings import end_with_parent
from tools.kit.pid import ProcessId
from tools.kit.waiting import wait_for

ROOT = Path(__file__).parents[3]
# A pool whose worker is busy, and a command. Each process writes its pid in one call: two may write at a time.
STARTS_OTHERS = """
import os, subprocess, time
from concurrent.futures import ProcessPoolExecutor
from tools.kit.endings import end_with_parent

def work():
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(60)

with ProcessPoolExecutor(1, initializer=end_with_parent) as pool:
    pool.submit(work)
    command = subprocess.Popen(["sleep", "60"], preexec_fn=end_with_parent)
    os.write(1, b"%d\\n" % command.pid)
    command.wait()
"""


def test_who_is_killed_leaves_neither_the_workers_of_its_pool_nor_its_command():
    with subprocess.Popen([sys.executable, "-c", STARTS_OTHERS], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        started = [ProcessId.of(int(parent.stdout.readline())) for _ in range(2)]
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert wait_for(lambda: not any(each.alive() for each in started), timeout_s=20)


def test_a_pool_that_ends_well_is_not_disturbed():
    with ProcessPoolExecutor(1, initializer=end_with_parent) as pool:
        assert 4 == pool.submit(pow, 2, 2).result()
