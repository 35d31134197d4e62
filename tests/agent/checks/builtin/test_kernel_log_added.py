"""The classes of the check `kernelLog` that users of other detectors have asked for: what they name, what ends them."""

from agent.checks.block_devices import Places
from agent.checks.builtin.kernel_log import Settings, judge
from agent.checks.state import CheckState, Finding
from tests.agent.checks.builtin.kernel_lines_added import ADDED, holding, known
from tools.kit.cases import cases

LOADING = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01"


@cases(
    "name, line, thing",
    ("a GPU", "gpuLost", 0, "0000:b3:00"),
    ("a GPU without a name", "gpuLost", 1, ""),
    ("a switch", "sxid", 0, "0000:c5:00.0"),
    ("a device behind a port", "pcieFatal", 0, "0000:00:01.0"),
    ("an interface", "netdevWatchdog", 0, "eth0"),
    ("an interface of a newer kernel", "netdevWatchdog", 2, "eth4"),
    ("a server", "nfsNotResponding", 1, "nfs-1.example.com"),
    ("a pool", "zfsSuspended", 2, "tank"),
    ("a pod's memory", "oomKill", 0, "Memory cgroup"),
    ("the node's memory", "oomKill", 2, ""),
)
def test_a_line_is_about(name: str, line: int, thing: str) -> None:
    assert [(name, thing)] == [key for key, _ in known((1.0, ADDED[name][line])).troubles]


@cases(
    "name, at_s, text, expected",
    ("the NFS server answers", "nfsNotResponding", 2.0, "nfs: server 10.0.0.7 OK", []),
    ("another one does", "nfsNotResponding", 2.0, "nfs: server 10.0.0.8 OK", ["nfsNotResponding"]),
    ("the switch's driver is loaded again", "sxid", 2.0, LOADING, []),
    ("NVSentinel#155: the driver says last that it is being loaded", "gpuLost", 1.2, LOADING, ["gpuLost"]),
    ("the driver is loaded again later", "gpuLost", 11.0, LOADING, []),
)
def test_an_end(name: str, at_s: float, text: str, expected: list[str]) -> None:
    assert expected == holding(known((1.0, ADDED[name][0]), (at_s, text)), at_s + 1)


def found(name: str, **more: object) -> Finding:
    troubles = dict(known(*[(100.0, ADDED[name][0])] * 2).troubles)
    return judge(troubles, Places(), 105.0, Settings(**more))


def test_an_oom_kill_is_said_and_changes_nothing() -> None:
    text = "oomKill Memory cgroup: 2 lines, the last 5 s ago"
    assert Finding(CheckState.PASSED, f"nothing that still holds; {text}") == found("oomKill")
    assert Finding(CheckState.WARNED, text) == found("oomKill", warn=("oomKill",))
    assert Finding(CheckState.PASSED, "nothing that still holds") == found("oomKill", note=())


@cases("name", *((name, name) for name in ADDED if name != "oomKill"))
def test_a_new_class_only_warns_unless_the_settings_gate_it(name: str) -> None:
    assert (CheckState.WARNED, CheckState.FAILED) == (found(name).state, found(name, gate=(name,)).state)
