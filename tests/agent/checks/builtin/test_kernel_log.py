"""The check `kernelLog` on a tree with a pipe for the log: scopes, restarts, rights."""

import errno
import json
import os
import tracemalloc
from pathlib import Path

import pytest

from agent.checks.builtin import kernel_log
from agent.checks.builtin.kernel_log import Check, Settings
from agent.checks.kernel_lines import WARN
from agent.checks.state import CheckState, Finding
from tools.fakes.kmsg import line

BOOT = "5f1b"


class Node:
    """A kernel's log that is a pipe, two disks (sda has a partition with a volume on it), and a clock."""

    def __init__(self, root: Path) -> None:
        self.root, self.now_s, self.sequence = root, 1000.0, 0
        self.log = root / "kmsg"
        os.mkfifo(self.log)
        self.writer = os.open(self.log, os.O_RDWR | os.O_NONBLOCK)
        self.boot(BOOT)
        for device, number in (
            ("sda", "8:0"),
            ("sda/sda1", "8:1"),
            ("sdb", "8:16"),
            ("sdc", "8:32"),
            ("dm-0", "253:0"),
        ):
            self.file(f"sys/devices/{device}/dev", f"{number}\n")
        self.file("sys/devices/sda/sda1/partition", "1\n")
        self.file("sys/devices/sda/sda1/holders/dm-0/dev", "253:0\n")
        (root / "sys/class").mkdir()
        for device in ("sda", "sdb", "sdc", "dm-0"):
            self.link(device, device)
        self.link("sda1", "sda/sda1")
        self.mounts(
            ("8:16", "/", "/dev/sdb"), ("253:0", "/var/lib/kubelet", "/dev/mapper/a"), ("8:99", "/data", "/dev/x"),
            ("8:97", "/var/lib/rancher/k3s", "/dev/k"), ("8:98", "/var/lib/rancher/rke2/agent/containerd", "/dev/r"),
        )  # fmt: skip

    def link(self, name: str, device: str) -> None:
        (self.root / "sys/class/block").mkdir(exist_ok=True)
        (self.root / "sys/class/block" / name).symlink_to(self.root / "sys/devices" / device)

    def file(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def boot(self, boot_id: str) -> None:
        self.file("boot_id", f"{boot_id}\n")

    def mounts(self, *mounts: tuple[str, str, str]) -> None:
        lines = [f"{20 + place} 1 {n} / {at} rw shared:1 - xfs {of} rw" for place, (n, at, of) in enumerate(mounts)]
        self.file("mountinfo", "\n".join(lines) + "\n")

    def check(self, **more: object) -> Check:
        settings = {
            "path": str(self.log),
            "boot_id": str(self.root / "boot_id"),
            "mountinfo": str(self.root / "mountinfo"),
            "sys": str(self.root / "sys"),
            "position_file": str(self.root / "position"),
        }
        return Check(Settings(**(settings | more)), 2.0, lambda: self.now_s)

    def say(self, text: str, times: int = 1, facility: int = 0) -> None:
        for _ in range(times):
            os.write(self.writer, line(self.sequence, self.now_s, text, facility).encode())
            self.sequence += 1


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path)
    yield made
    os.close(made.writer)


WELL = Finding(CheckState.PASSED, "nothing that still holds")
SHUT = "XFS ({}): Filesystem has been shut down due to log error (0x2)."
IO = "I/O error, dev {}, sector 2048 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2"


def test_the_first_run_says_that_all_is_well(node: Node) -> None:
    assert WELL == node.check()()


SCOPES = [
    pytest.param("dm-0", "failed", "/var/lib/kubelet", id="a volume that a gate path lies on"),
    pytest.param("sda", "failed", "/var/lib/kubelet", id="the disk below it"),
    pytest.param("sda1", "failed", "/var/lib/kubelet", id="the partition below it"),
    pytest.param("sdb", "failed", "/", id="the root's disk"),
    pytest.param("k", "failed", "/var/lib/rancher/k3s/agent/containerd", id="that of k3s"),
    pytest.param("r", "failed", "/var/lib/rancher/rke2/agent/containerd", id="that of RKE2's containerd"),
    pytest.param("x", "warned", "/data", id="a disk of pods' own, known by the name in the mounts"),
    pytest.param("sdc", "passed", "", id="a disk that nothing is mounted from"),
    pytest.param("fd0", "passed", "", id="a device that there is not"),
    pytest.param("../..", "passed", "", id="a name that leads elsewhere"),
]


@pytest.mark.parametrize(("device", "state", "below"), SCOPES)
def test_errors_of_a_device_count_by_what_is_mounted_from_it(node: Node, device: str, state: str, below: str) -> None:
    node.say(IO.format(device), 5)
    gone = " (device gone)" if len(device) == 1 else ""
    expected = f"ioError {device}{gone}: 5 lines, the last 0 s ago, below {below}" if below else WELL.output
    assert Finding(CheckState(state), expected) == node.check()()


@pytest.mark.parametrize(
    ("above", "text", "state"),
    [
        pytest.param({"md/level": "raid1"}, "sda", "warned", id="one disk of a mirror, which goes on"),
        pytest.param({"md/level": "raid6"}, "sda", "warned", id="one of a RAID of level 6"),
        pytest.param({"md/level": "raid0"}, "sda", "failed", id="one of a RAID that needs all"),
        pytest.param({"dm/uuid": "mpath-3600508b400105e21"}, "sda", "warned", id="one path of several to a disk"),
        pytest.param({"dm/uuid": "LVM-b0dE"}, "sda", "failed", id="the disk below a volume"),
        pytest.param({"md/level": "raid1"}, "dm-0", "failed", id="the mirror itself"),
    ],
)
def test_what_goes_on_without_a_disk_closes_no_node_for_it(
    node: Node, above: dict[str, str], text: str, state: str
) -> None:
    for path, content in above.items():
        node.file(f"sys/devices/dm-0/{path}", f"{content}\n")
    node.say(IO.format(text), 5)
    expected = f"ioError {text}: 5 lines, the last 0 s ago, below /var/lib/kubelet"
    assert Finding(CheckState(state), expected) == node.check()()


@pytest.mark.parametrize("device", ["dm-0", "sda"])
def test_a_file_system_with_a_number_of_its_own_is_found_on_a_volume_by_its_name(node: Node, device: str) -> None:
    """As btrfs on LVM or LUKS: the mounts have the mapper's name, the kernel tells of the device."""
    node.file("sys/devices/dm-0/dm/name", "vg-root\n")
    node.mounts(("0:35", "/", "/dev/mapper/vg-root"))
    node.say(IO.format(device), 5)
    expected = f"ioError {device}: 5 lines, the last 0 s ago, below /"
    assert Finding(CheckState.FAILED, expected) == node.check()()


def test_a_file_system_that_is_unmounted_is_no_trouble_any_more(node: Node) -> None:
    check = node.check()
    node.say(SHUT.format("dm-0"))
    assert CheckState.FAILED is check().state
    node.mounts(("8:16", "/", "/dev/sdb"))
    assert WELL == check()


def test_what_is_over_is_over(node: Node) -> None:
    check = node.check()
    node.say("watchdog: BUG: soft lockup - CPU#3 stuck for 26s!", 2)
    node.now_s += 299
    assert Finding(CheckState.FAILED, "softLockup: 2 lines, the last 299 s ago") == check()
    node.now_s += 1
    assert WELL == check()


def test_a_restart_brings_nothing_back_and_forgets_nothing(node: Node) -> None:
    check = node.check()
    node.say(SHUT.format("dm-0"))
    node.say("watchdog: BUG: soft lockup - CPU#3 stuck for 26s!", 2)
    assert CheckState.FAILED is check().state
    node.now_s += 400
    found = node.check()()  # the pipe is empty now: as a buffer in which all was overwritten
    assert (
        Finding(CheckState.FAILED, "filesystemShutdown dm-0: 1 lines, the last 400 s ago, below /var/lib/kubelet")
        == found
    )


def test_lines_that_are_read_again_count_once(node: Node) -> None:
    node.say("watchdog: BUG: soft lockup - CPU#3 stuck for 26s!")
    assert WELL == node.check()()
    node.sequence = 0
    node.say("watchdog: BUG: soft lockup - CPU#3 stuck for 26s!")
    assert WELL == node.check()()


def test_a_line_that_comes_while_we_look_is_of_now(node: Node) -> None:
    """The clock of the log has gone half an hour another way than ours."""
    check = node.check()
    check()
    for _ in range(2):
        os.write(
            node.writer, line(node.sequence, node.now_s - 1800, "BUG: soft lockup - CPU#3 stuck for 26s!").encode()
        )
        node.sequence += 1
    assert Finding(CheckState.FAILED, "softLockup: 2 lines, the last 0 s ago") == check()


def test_another_boot_begins_anew(node: Node) -> None:
    node.say(SHUT.format("dm-0"))
    assert CheckState.FAILED is node.check()().state
    node.boot("77")
    node.sequence, node.now_s = 0, 5.0
    assert WELL == node.check()()
    node.say(SHUT.format("sdb"))
    assert CheckState.FAILED is node.check()().state


@pytest.mark.parametrize("content", [b"", b"{", b"[]", json.dumps({"boot_id": 5}).encode(), b"\xff"], ids=repr)
def test_a_position_that_does_not_parse_is_none(node: Node, content: bytes) -> None:
    (node.root / "position").write_bytes(content)
    assert WELL == node.check()()


def test_a_position_that_cannot_be_kept_is_no_fault_of_the_node(node: Node) -> None:
    check = node.check(position_file=str(node.root / "none/position"))
    node.say(SHUT.format("dm-0"))
    assert CheckState.FAILED is check().state


def test_a_position_that_could_not_be_kept_is_kept_as_soon_as_there_is_room(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that is known is lost: the kernel's buffer may have gone on when the agent starts anew."""
    check = node.check()
    node.say(SHUT.format("dm-0"))

    def full(*_of: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_bytes", full)
        assert CheckState.FAILED is check().state
    assert not (node.root / "position").exists()
    check()
    assert "dm-0" in (node.root / "position").read_text()


def test_what_programs_write_counts_only_when_told_to(node: Node) -> None:
    node.say(SHUT.format("dm-0"), facility=1)
    assert WELL == node.check()()
    node.say(SHUT.format("dm-0"), facility=1)
    assert CheckState.FAILED is node.check(programs=True)().state


def test_what_people_call_over_in_it_counts_also_where_programs_do_not(node: Node) -> None:
    check = node.check()
    node.say(SHUT.format("dm-0"))
    assert CheckState.FAILED is check().state
    node.say("readygate: over filesystemShutdown dm-0", facility=1)
    assert WELL == check()


def test_a_class_warns_where_told_to_and_does_not_count_where_it_is_in_neither_list(node: Node) -> None:
    check, deaf = node.check(gate=("hungTask",), warn=("filesystemShutdown",)), node.check(gate=(), warn=())
    node.say(SHUT.format("dm-0"))
    assert CheckState.WARNED is check().state
    node.say("INFO: task dd:4242 blocked for more than 120 seconds.")
    assert CheckState.FAILED is check().state
    assert WELL == deaf()


BLIND = [
    pytest.param({"path": "/none/kmsg"}, "/none/kmsg cannot be opened (No such file or directory)", id="no log"),
    pytest.param({"path": "/"}, "/ cannot be read (Is a directory): needs CAP_SYSLOG", id="a log that is none"),
    pytest.param({"boot_id": "/none/boot_id"}, "/none/boot_id is not there", id="no boot id"),
]


@pytest.mark.parametrize(("settings", "expected"), BLIND)
def test_a_log_that_cannot_be_read_is_unknown(node: Node, settings: dict[str, str], expected: str) -> None:
    check = node.check(**settings)
    found = [check(), check()]
    assert [CheckState.UNKNOWN] * 2 == [one.state for one in found]
    assert expected in found[1].output


def test_mounts_that_cannot_be_read_are_unknown_only_where_a_device_is_in_trouble(node: Node) -> None:
    check = node.check(mountinfo="/none/mountinfo")
    assert WELL == check()
    node.say(SHUT.format("dm-0"))
    found = check()
    assert CheckState.UNKNOWN is found.state
    assert found.output.startswith("filesystemShutdown, but /none/mountinfo is not there: needs the host's processes")


def test_mounts_that_cannot_be_read_hide_nothing_else(node: Node) -> None:
    check = node.check(mountinfo="/none/mountinfo")
    node.say(SHUT.format("dm-0"))
    node.say("watchdog: BUG: soft lockup - CPU#3 stuck for 26s!", 2)
    found = check()
    assert CheckState.FAILED is found.state
    assert found.output.startswith("softLockup: 2 lines, the last 0 s ago; filesystemShutdown, but /none/mountinfo is")


def test_what_only_warns_is_unknown_beside_mounts_that_cannot_be_read(node: Node) -> None:
    check = node.check(mountinfo="/none/mountinfo")
    node.say(SHUT.format("dm-0"))
    node.say("INFO: task dd:4242 blocked for more than 120 seconds.")
    assert CheckState.UNKNOWN is check().state


def test_a_node_with_many_containers_has_long_mounts(node: Node) -> None:
    """Of each container an overlay, whose line names all its layers."""
    layers = "lowerdir=" + ":".join(f"/var/lib/containerd/io/snapshots/{number}/fs" for number in range(100))
    overlays = [f"{number} 1 0:{number} / /run/{number} rw - overlay overlay rw,{layers}" for number in range(600)]
    mounts = (node.root / "mountinfo").read_text()
    node.file("mountinfo", "\n".join([*overlays, mounts]))
    assert (node.root / "mountinfo").stat().st_size > 2 * 2**20
    node.say(SHUT.format("dm-0"))
    assert CheckState.FAILED is node.check()().state


def test_a_flood_is_read_on_in_the_next_run(node: Node) -> None:
    """A clock that goes on while it reads: half of the timeout is for reading."""
    clock = iter(range(100_000))
    check = Check(Settings(path=str(node.log), boot_id=str(node.root / "boot_id")), 6.0, lambda: float(next(clock)))
    read = []
    node.say("x" * 500, 100)
    for _ in range(60):
        check()
        read.append(check._known.sequence)
    assert (True, 99) == (read[0] < 99, read[-1])


def test_what_the_first_run_had_no_time_for_is_as_old_as_it_is(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with many processors keeps 200,000 records, and the agent is new there: two stalls of days ago, an hour
    apart, are none of now."""
    stall = "watchdog: BUG: soft lockup - CPU#3 stuck for 26s!"
    old = [line(n, 900.0, "x") for n in range(12)] + [line(12, 1000.0, stall), line(13, 4600.0, stall)]
    records = [each.encode() for each in old]
    node.now_s = 1e6
    check = node.check()

    def read(_log: int, _most: int) -> bytes:
        node.now_s += 0.1  # it may read for a second
        return records.pop(0) if records else full()

    with monkeypatch.context() as kernel:
        kernel.setattr(kernel_log.os, "read", read)
        found = [check(), check(), check()]
        records = [line(n, 10.0, stall).encode() for n in (14, 15)]
        found.append(check())
    assert [WELL, WELL, WELL, CheckState.FAILED] == [*found[:3], found[3].state]


def test_a_flood_of_different_things_takes_no_memory(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look at a log that has gone full, or while the kernel writes as fast as it is read."""
    records = iter(line(n, 999.0, f"I/O error, dev sd{n}, sector 1").encode() for n in range(30_000))

    def read(_log: int, _most: int) -> bytes:
        return next(records, None) or full()

    check = node.check()
    check()
    tracemalloc.start()
    try:
        with monkeypatch.context() as kernel:
            kernel.setattr(kernel_log.os, "read", read)
            check()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (29_999, True) == (check._known.sequence, peak <= 2**21), peak


def full() -> bytes:
    raise BlockingIOError


def test_the_log_of_this_machine_is_understood() -> None:
    """What this machine's kernel has said may be anything; where it may not be read, that is said."""
    check = Check(Settings(), 4.0)
    found = check()
    if found.state is CheckState.UNKNOWN:
        assert "needs" in found.output
    else:
        assert (True, True) == (check.descriptor() is not None, check._known.sequence > 0)


def test_a_line_that_a_program_writes_to_the_log_of_this_machine_is_read(tmp_path: Path) -> None:
    """Where it may be written to: the kernel itself then makes the record, its number and its time."""
    if not os.access("/dev/kmsg", os.R_OK | os.W_OK):
        return
    log = os.open("/dev/kmsg", os.O_WRONLY)
    check = Check(Settings(programs=True, position_file=str(tmp_path / "position"), warn=(*WARN,)), 4.0)
    text = f"INFO: task readygate-test-{os.getpid()}:1 blocked for more than 1 seconds."
    try:
        check()
        before = _lines(check)
        os.write(log, f"{text}\n".encode())  # what has no end may go on, and is not shown yet
    finally:
        os.close(log)
    check()
    assert before + 1 <= _lines(check)


def _lines(check: Check) -> int:
    return sum(trouble.lines for (name, _), trouble in check._known.troubles if name == "hungTask")
