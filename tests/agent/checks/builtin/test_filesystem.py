"""The check `filesystem`: the kernel's list of mounts, and what comes of a write."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from agent.checks.builtin import filesystem
from agent.checks.builtin.filesystem import (
    FILE,
    OUTPUT_LIMIT_BYTES,
    Check,
    Mount,
    Placed,
    Settings,
    Tried,
    dead_words,
    judged,
    mount_of,
    mounts_of,
    tried_of,
)
from agent.checks.state import CheckState, Finding
from agent.processes import single
from agent.processes.command import Completed, ExecTimeout
from tools.kit.ability import cannot_run
from tools.kit.cases import cases

failed, passed, unknown = (
    partial(Finding, state) for state in (CheckState.FAILED, CheckState.PASSED, CheckState.UNKNOWN)
)

MOUNTINFO = rb"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
30 22 8:2 / /var/lib/kubelet rw,nosuid shared:2 master:3 - xfs /dev/sdb1 ro,noquota
31 22 8:3 / /var/lib rw - ext4 /dev/sdc1 rw,shutdown
32 22 8:4 / /data\040one ro - ext4 /dev/sdd1 rw
33 32 0:5 / /data\040one/in rw - tmpfs tmpfs rw,size=8k
34 22 0:6 / /data\040one/in rw - ext4 /dev/sde1 rw
a line of another shape
"""


@cases(
    "path, point, words",
    ("a file system that takes writes", "/etc", "/", ""),
    ("read-only", "/var/lib/kubelet", "/var/lib/kubelet", "the file system is read-only (xfs of /dev/sdb1)"),
    ("in it", "/var/lib/kubelet/pods/x/", "/var/lib/kubelet", "the file system is read-only (xfs of /dev/sdb1)"),
    ("shut down", "/var/lib/kubelets", "/var/lib", "the file system is shutdown (ext4 of /dev/sdc1)"),
    ("read-only for us alone is not the file system's", "/data one/x", "/data one", ""),
    ("a mount over a mount", "/data one/in", "/data one/in", ""),
)
def test_what_the_kernel_says_of_the_file_system_of_a_path(path: str, point: str, words: str) -> None:
    found = mount_of(path, mounts_of(MOUNTINFO))
    assert found is not None
    assert (point, words) == (found.point, dead_words(found))


def test_of_two_mounts_at_one_place_the_last_counts() -> None:
    found = mount_of("/data one/in", mounts_of(MOUNTINFO))
    assert found is not None
    assert found.source == "/dev/sde1"


def test_no_list_of_mounts_says_nothing() -> None:
    assert mounts_of(b"") == ()
    assert mount_of("/x", ()) is None
    assert dead_words(None) == ""


RO = Mount("/a", frozenset({"ro"}), frozenset({"rw"}), "ext4", "/dev/sda1")
OK, FULL = Tried("/a", took_s=0.004), Tried("/b", "write", 28, 0.001)
EROFS, EIO = Tried("/a", "open", 30, 0.001), Tried("/a", "fsync", 5, 0.1)
NO_RIGHT, EDQUOT = Tried("/b", "open", 13, 0.1), Tried("/b", "fsync", errno.EDQUOT, 0.1)
SLOW = Tried("/b", took_s=0.02)
NO_SPACE = "write: ENOSPC (No space left on device)"
NO_ACCESS = "/b: the agent may not write: open: EACCES (Permission denied)"
READ_ONLY = "/a: mounted read-only for the agent: grant it a writable mount"


@cases(
    "tried, mounts, expected",
    ("all good", {"/a": OK, "/b": SLOW}, {}, passed("/a 4 ms, /b 20 ms")),
    ("one is full", {"/a": OK, "/b": FULL}, {}, failed(f"/b: {NO_SPACE}")),
    ("each fault", {"/a": EROFS, "/b": FULL}, {}, failed(f"/a: open: EROFS (Read-only file system); /b: {NO_SPACE}")),
    ("a failure and no right", {"/a": EIO, "/b": NO_RIGHT}, {}, failed("/a: fsync: EIO (Input/output error)")),
    ("the quota is used up", {"/a": OK, "/b": EDQUOT}, {}, failed("/b: fsync: EDQUOT (Disk quota exceeded)")),
    ("no right", {"/a": OK, "/b": NO_RIGHT}, {}, unknown(NO_ACCESS)),
    ("read-only for the agent", {"/a": EROFS, "/b": SLOW}, {"/a": RO}, unknown(READ_ONLY)),
    ("the child died", {"/a": OK}, {}, unknown("/b: the child process ended before it was tried")),
)
def test_what_was_tried_makes_the_finding(tried: dict, mounts: dict, expected: Finding) -> None:
    assert expected == judged(("/a", "/b"), tried, mounts, Settings(), Placed())


def test_a_line_that_is_cut_off_says_nothing() -> None:
    assert {"/a": Tried("/a", "", 0, 0.5), "/b": Tried("/b")} == tried_of(
        b'["/a"]\n["/a", "", 0, 0.5]\n["/b"]\n["/b", "wr'
    )


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    found = Check(Settings((str(tmp_path),)), 20.0)()
    assert found.state is CheckState.PASSED
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_killed_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    """As each time systemd stops the service, and before it is uninstalled."""
    killed = f"import os\nos.fsync = lambda _: os.kill(os.getpid(), 9)\n{filesystem.SCRIPT}"
    done = subprocess.run([sys.executable, "-c", killed, FILE, str(tmp_path), '"a"'], capture_output=True, check=False)
    assert (-9, b'["a"]\n', []) == (done.returncode, done.stdout, [*tmp_path.iterdir()])


def test_what_a_killed_run_left_behind_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("x")
    assert Check(Settings((str(tmp_path),)), 20.0)().state is CheckState.PASSED
    assert list(tmp_path.iterdir()) == []


VICTIM = "precious"


@pytest.mark.parametrize(
    ("put", "left"),
    [
        pytest.param(lambda folder: (folder / FILE).symlink_to(folder / "victim"), [], id="a link"),
        pytest.param(lambda folder: (folder / FILE).hardlink_to(folder / "victim"), [], id="the file by another name"),
        pytest.param(lambda folder: (folder / FILE).mkdir(), [FILE], id="a folder"),
        pytest.param(lambda folder: os.mkfifo(folder / FILE), [], id="a named pipe"),
    ],
)
def test_what_a_pod_has_put_in_the_files_place_is_neither_a_fault_nor_written_to(
    tmp_path: Path, put: Callable[[Path], object], left: list[str]
) -> None:
    (tmp_path / "victim").write_text(VICTIM)
    put(tmp_path)
    assert CheckState.PASSED is Check(Settings((str(tmp_path),)), 20.0)().state
    assert (VICTIM, sorted([*left, "victim"])) == (
        (tmp_path / "victim").read_text(),
        sorted(path.name for path in tmp_path.iterdir()),
    )


def test_a_pod_that_puts_it_there_again_and_again_is_no_fault(tmp_path: Path) -> None:
    """Whenever the child has taken the name away it is there anew, and the next name too."""
    again = (
        f"import os\nunlink = os.unlink\nos.unlink = lambda path: unlink(path) or os.mkdir(path)\n{filesystem.SCRIPT}"
    )
    (tmp_path / FILE).touch()
    words = [sys.executable, "-c", again, FILE, str(tmp_path), '"a"']
    done = subprocess.run(words, capture_output=True, check=True)
    assert b'["a", "", 0, ' in done.stdout


def test_a_folder_that_is_gone_has_failed(tmp_path: Path) -> None:
    found = Check(Settings((str(tmp_path / "gone"),)), 20.0)()
    assert Finding(CheckState.FAILED, f"{tmp_path}/gone: open: ENOENT (No such file or directory)") == found


def test_a_path_that_hangs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a write to a dead server: the child has begun with a path, and says no more."""
    hangs = 'import os, sys, time\nos.write(1, b\'["/a"]\\n["/a", "", 0, 0.1]\\n["/b"]\\n\')\ntime.sleep(60)\n'
    monkeypatch.setattr(filesystem, "SCRIPT", hangs)
    check = Check(Settings(("/a", "/b")), 1.0)
    assert Finding(CheckState.HUNG, "/b: no end after 1 s") == check()


def test_a_child_that_cannot_be_killed_is_waited_for_alone_and_its_path_is_still_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In state D, as on a disk that is gone: SIGKILL has not ended it when the run is over."""
    stuck = subprocess.Popen(["sleep", "60"])
    started: list[tuple[str, ...]] = []

    def run(command: tuple[str, ...], *, timeout_s: float, output_limit_bytes: int, sweep: bool) -> Completed:
        assert (OUTPUT_LIMIT_BYTES, True) == (output_limit_bytes, sweep)
        started.append(command)
        if len(started) == 1:
            said = b'["/a"]\n["/a", "", 0, 0.1]\n["/b"]\n'
            raise ExecTimeout(command, timeout_s, output=said, leftover=stuck)
        return Completed(0, b'["/a", "", 0, 0.1]\n["/b", "", 0, 0.2]\n', b"")

    monkeypatch.setattr(single, "run_command", run)
    check = Check(Settings(("/a", "/b"), mountinfo=None), 1.0)
    try:
        assert Finding(CheckState.HUNG, "/b: no end after 1 s") == check()
        still = Finding(CheckState.HUNG, f"/b: process {stuck.pid} cannot be killed")
        assert [still, still] == [check(), check()]
        assert 1 == len(started)
    finally:
        stuck.kill()
        stuck.wait()
    assert Finding(CheckState.PASSED, "/a 100 ms, /b 200 ms") == check()


def test_no_list_of_mounts_to_read_is_unknown() -> None:
    check = Check(Settings(("/",), mountinfo="/nope"), 1.0)
    assert Finding(CheckState.UNKNOWN, "cannot look at /nope: No such file or directory") == check()


# The real kernel, in a mount namespace of its own.

LOOK = """
import json, sys
from agent.checks.builtin.filesystem import Check, Settings
check = Check(Settings((sys.argv[1],)), 20.0)
for line in sys.stdin:
    found = check()
    print(json.dumps([found.state, found.output]), flush=True)
"""


@cases(
    "breaks, heals, expected",
    ("read-only", "mount -o remount,ro {0}", "mount -o remount,rw {0}", "is read-only (tmpfs of none)"),
    ("full", "cat /dev/zero > {0}/big 2>&-", "rm {0}/big", "write: ENOSPC"),
    ("bind", "mount -o remount,bind,ro {0}", "mount -o remount,bind,rw {0}", "mounted read-only for"),
)
def test_a_real_file_system_breaks_and_heals(tmp_path: Path, breaks: str, heals: str, expected: str) -> None:
    if os.geteuid() != 0:
        cannot_run("a file system is mounted, which only root may: sudo make test")
    lines = [
        f"mount -t tmpfs -o size=64k none {tmp_path}",
        'look() { echo | "$1" -c "$2" "$3"; }',
        'look "$@"',
        breaks.format(tmp_path),
        'look "$@"',
        heals.format(tmp_path),
        'look "$@"',
    ]
    words = ["unshare", "--mount", "sh", "-c", "\n".join(lines), "sh", sys.executable, LOOK, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    before, broken, healed = [json.loads(line) for line in done.stdout.splitlines()]
    assert ("passed", "passed") == (before[0], healed[0])
    assert broken[0] == ("unknown" if "bind" in breaks else "failed")
    assert expected in broken[1]
