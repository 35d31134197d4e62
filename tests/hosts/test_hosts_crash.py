"""A start that is killed half-way leaves hosts running; the next command finds and removes all of it. One that a person
ends leaves nothing.

Runs beside the session's hosts: in network and mount name spaces of its own, with a run folder of its own.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts.waiting import PATIENT_S
from tools.kit.pid import ProcessId
from tools.kit.waiting import wait_until
from tools.testbed.hosts.layout import SET_VARIABLE


@pytest.fixture
def testbed_folder():
    # Not tmp_path: pytest keeps those, and a host's file system is no keepsake.
    return Path("/var/tmp") / f"readygate-crash-{os.getpid()}"


def test_what_a_killed_start_left_is_removed_and_nothing_else(elsewhere, testbed_folder):
    environ = of_the_first_set(testbed_folder)
    start = [*elsewhere, sys.executable, "-c", "from tools.testbed.hosts.hosts import Hosts; Hosts().up()"]
    starting = subprocess.Popen(start, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    state = {"processes": {}, "cgroups": []}

    def has_three_hosts() -> bool:
        assert starting.poll() is None
        state.update(read(testbed_folder) or {})
        return len(state["processes"]) == 3

    wait_until(has_three_hosts, "three hosts", timeout_s=PATIENT_S)
    os.kill(starting.pid, signal.SIGKILL)
    starting.wait()
    hosts = [ProcessId(**process) for process in state["processes"].values()]
    assert [process.alive() for process in hosts] == [True] * 3

    end = [*elsewhere, sys.executable, "-c", "from tools.testbed.hosts.hosts import Hosts; Hosts().down()"]
    done = subprocess.run(end, env=environ, capture_output=True, text=True, timeout=180, check=False)
    assert (done.returncode, done.stderr) == (0, "")

    nothing_is_left(elsewhere, testbed_folder, state)
    (testbed_folder / "hosts.lock").unlink()
    testbed_folder.rmdir()


MOMENTS = {
    "before the first host": lambda folder, _state: (folder / "hosts" / "state.json").exists(),
    # Or a little later: who looks may have been kept from it for as long as one host takes.
    "while the second one starts": lambda _folder, state: len(state["processes"]) >= 1,
    "while they boot": lambda _folder, state: len(state["processes"]) == 3,
    "while its nodes become Ready": lambda folder, _state: (folder / "hosts" / "admin.conf").exists(),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_start_that_a_person_ends_leaves_nothing(elsewhere, testbed_folder, moment):
    environ = of_the_first_set(testbed_folder)
    # From a shell that runs it in the background it would ignore Ctrl-C.
    up = [*elsewhere, "env", "--default-signal", sys.executable, "-m", "tools.testbed", "--ring", "hosts", "up"]
    starting = subprocess.Popen(up, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    state = {"processes": {}, "cgroups": []}

    def is_there() -> bool:
        assert starting.poll() is None
        state.update(read(testbed_folder) or {})
        return MOMENTS[moment](testbed_folder, state)

    try:
        wait_until(is_there, moment, timeout_s=PATIENT_S)
        starting.send_signal(signal.SIGINT)
        assert starting.wait(timeout=180) == 130
    finally:
        starting.kill()
    nothing_is_left(elsewhere, testbed_folder, state)
    (testbed_folder / "hosts.lock").unlink()
    testbed_folder.rmdir()


def of_the_first_set(testbed_folder):
    """The session may have another set of hosts; each keeps its state in a folder of its own."""
    environ = {**os.environ, "READYGATE_TESTBED_DIR": str(testbed_folder)}
    environ.pop(SET_VARIABLE, None)
    return environ


def read(testbed_folder):
    """What a start has written down of what it has made; None before."""
    try:
        return json.loads((testbed_folder / "hosts" / "state.json").read_text())
    except (FileNotFoundError, ValueError):
        return None


def nothing_is_left(elsewhere, testbed_folder, state):
    hosts = [ProcessId(**process) for process in state["processes"].values()]
    assert [process.alive() for process in hosts] == [False] * len(hosts)
    assert [folder for folder in state["cgroups"] if Path(folder).exists()] == []
    assert not (testbed_folder / "hosts").exists()

    def told(*command: str) -> str:
        return subprocess.run([*elsewhere, *command], capture_output=True, text=True, timeout=60, check=True).stdout

    assert str(testbed_folder) not in told("cat", "/proc/self/mountinfo")
    assert told("ip", "netns", "list") == ""
    links = [link["ifname"] for link in json.loads(told("ip", "-json", "link", "show"))]
    assert [link for link in links if link.startswith("rg-")] == []
