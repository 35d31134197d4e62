"""A start that is killed half-way leaves hosts running; the next command finds and removes all of it.

Runs beside the session's hosts: in network and mount name spaces of its own, with a run folder of its own.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.kit.pid import ProcessId

ROOT = Path(__file__).resolve().parents[2]
_HOLD = "mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns && ip link set lo up && echo made && exec sleep 600"


@pytest.fixture
def elsewhere(request):
    """Runs a command as on another machine; the argument list goes before the command's."""
    request.getfixturevalue("able")
    holder = subprocess.Popen(
        ["unshare", "--net", "--mount", "sh", "-c", _HOLD], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "made\n"
    yield ["nsenter", f"--target={holder.pid}", "--net", "--mount", f"--wd={ROOT}"]
    holder.kill()
    holder.wait()
    holder.stdout.close()


@pytest.fixture
def testbed_folder():
    # Not tmp_path: pytest keeps those, and a host's file system is no keepsake.
    return Path("/var/tmp") / f"readygate-crash-{os.getpid()}"


def test_what_a_killed_start_left_is_removed_and_nothing_else(elsewhere, testbed_folder):
    environ = {**os.environ, "READYGATE_TESTBED_DIR": str(testbed_folder)}
    start = [*elsewhere, sys.executable, "-c", "from tests.testbed.hosts.hosts import Hosts; Hosts().up()"]
    starting = subprocess.Popen(start, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    state_file = testbed_folder / "hosts" / "state.json"
    deadline = time.monotonic() + 300
    state = {"processes": {}}
    while len(state["processes"]) < 3:
        assert time.monotonic() < deadline
        assert starting.poll() is None
        time.sleep(0.05)
        if state_file.exists():
            state = json.loads(state_file.read_text())
    os.kill(starting.pid, signal.SIGKILL)
    starting.wait()
    hosts = [ProcessId(**process) for process in state["processes"].values()]
    assert [process.alive() for process in hosts] == [True] * 3

    end = [*elsewhere, sys.executable, "-c", "from tests.testbed.hosts.hosts import Hosts; Hosts().down()"]
    done = subprocess.run(end, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")

    assert [process.alive() for process in hosts] == [False] * 3
    assert [folder for folder in state["cgroups"] if Path(folder).exists()] == []
    assert not (testbed_folder / "hosts").exists()

    def told(*command: str) -> str:
        return subprocess.run([*elsewhere, *command], capture_output=True, text=True, timeout=10, check=True).stdout

    assert str(testbed_folder) not in told("cat", "/proc/self/mountinfo")
    assert told("ip", "netns", "list") == ""
    links = [link["ifname"] for link in json.loads(told("ip", "-json", "link", "show"))]
    assert [link for link in links if link.startswith("rg-")] == []
    (testbed_folder / "hosts.lock").unlink()
    testbed_folder.rmdir()
