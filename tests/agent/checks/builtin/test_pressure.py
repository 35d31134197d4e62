"""The check `pressure` warns before it fails, and never says what the kubelet's eviction says."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.checks.builtin import pressure
from agent.checks.builtin.pressure import Check, Facts, Settings, Stall, Use, judge, look, percentile
from agent.checks.state import CheckState, Finding

AMPLE_S = 20.0


class Node:
    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("io", "memory", "cpu"):
            self.stall(name)
        self.file("proc/loadavg", "4.98 3.89 4.59 7/186 27581\n")
        self.file("proc/sys/kernel/pid_max", "32768\n")
        self.file("proc/sys/kernel/threads-max", "1000\n")
        self.file("proc/sys/fs/file-nr", "1077\t0\t9223372036854775807\n")
        self.group("kubepods.slice")

    def file(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def stall(self, name: str, avg10: float = 0.0, avg60: float = 0.0, total: int = 0) -> None:
        some = f"some avg10={avg10 + 1:.2f} avg60={avg60 + 1:.2f} avg300=0.00 total={total + 7}\n"
        self.file(
            f"proc/pressure/{name}", f"{some}full avg10={avg10:.2f} avg60={avg60:.2f} avg300=0.00 total={total}\n"
        )

    def group(self, name: str, used: int = 50, limit: str = "500") -> None:
        self.file(f"cgroup/{name}/pids.current", f"{used}\n")
        self.file(f"cgroup/{name}/pids.max", f"{limit}\n")

    def settings(self, **more: object) -> Settings:
        return Settings(proc=str(self.root / "proc"), cgroup=str(self.root / "cgroup"), **more)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_first_run_says_that_all_is_well(node: Node) -> None:
    text = (
        "io stalled 0 % of a minute; memory stalled 0 % of a minute; cpu stalled 1 % of a minute; threads 186 of 1000; "
        "threads of pods 50 of 500; open files 1077 of 9223372036854775807"
    )
    assert Finding(CheckState.PASSED, text) == Check(node.settings(), AMPLE_S)()


STALLS = [
    # name, percent of a minute, total seconds stalled in the ten between the runs
    pytest.param("io", 39, 10, "passed", id="io, a little"),
    pytest.param("io", 40, 10, "warned", id="io, often"),
    pytest.param("io", 96, 3, "passed", id="io, over by now"),
    pytest.param("io", 96, 5, "warned", id="io, less by now"),
    pytest.param("io", 20, 10, "passed", id="io, only just begun"),
    pytest.param("io", 96, 10, "failed", id="io stands still"),
    pytest.param("memory", 100, 10, "warned", id="memory never fails: the kubelet evicts"),
    pytest.param("memory", 19, 10, "passed", id="memory, a little"),
    pytest.param("cpu", 100, 10, "warned", id="processors never fail"),
    pytest.param("cpu", 94, 10, "passed", id="processors that are busy"),
]


@pytest.mark.parametrize(("name", "minute", "stalled_s", "state"), STALLS)
def test_stalls(name: str, minute: float, stalled_s: float, state: str) -> None:
    before = Facts((Stall(name, minute, 0.0, 100.0),))
    now = Facts((Stall(name, minute, 0.0, 100.0 + stalled_s),))
    assert Finding(CheckState(state), f"{name} stalled {minute} % of a minute") == judge(now, before, 10.0, Settings())


FELT = [
    pytest.param((), "failed", id="nobody syncs for us: it is believed"),
    pytest.param((0.004, 0.004, 0.02), "warned", id="our own are quick: a pod that syncs, or may write only so much"),
    pytest.param((0.004, 0.1, 0.004), "failed", id="one of ours is slow"),
    pytest.param((0.9, 0.004, 0.004, 0.004), "warned", id="one was slow a while ago"),
]


@pytest.mark.parametrize(("syncs_s", "state"), FELT)
def test_a_disk_on_which_others_stand_still_fails_when_our_own_syncs_feel_it(
    syncs_s: tuple[float, ...], state: str
) -> None:
    facts = Facts((Stall("io", 99, 99, 1e6),), syncs_s=syncs_s)
    found = judge(facts, None, 0.0, Settings(fsync_warn_milliseconds=5000))
    assert (state, state == "warned") == (found.state, "which our own syncs do not feel" in found.output)


def test_the_first_run_takes_the_last_ten_seconds_for_now() -> None:
    found = [judge(Facts((Stall("io", 96, now, 1e6),)), None, 0.0, Settings()).state for now in (96, 0)]
    assert [CheckState.FAILED, CheckState.PASSED] == found


USES = [(79, "passed"), (80, "warned"), (94, "warned"), (95, "failed"), (200, "failed")]


@pytest.mark.parametrize(("used", "state"), USES)
def test_uses(used: int, state: str) -> None:
    found = judge(Facts(uses=(Use("threads", used, 100),)), None, 0.0, Settings())
    assert Finding(CheckState(state), f"threads {used} of 100") == found


def test_the_99th_percentile() -> None:
    assert [9, 9, 98, 99, 990] == [
        percentile(values, 99) for values in ([9], [1, 9], [*range(100)], [*range(101)], [*range(1001)])
    ]


GROUPS = ["kubepods.slice", "kubepods", "pids/kubepods.slice", "pids/kubepods"]


@pytest.mark.parametrize("group", GROUPS)
def test_the_pods_are_found_in_control_groups_of_each_form(node: Node, group: str) -> None:
    shutil.rmtree(node.root / "cgroup/kubepods.slice")
    node.group(group, used=490)
    found = Check(node.settings(), AMPLE_S)()
    assert Finding(CheckState.FAILED, "threads of pods 490 of 500") == found


ROOTS = [
    ("kubelet.slice/kubelet-kubepods.slice", None),
    ("kubelet.slice/kubelet-kubepods.slice", "/kubelet"),
    ("pids/kubelet/kubepods", None),
]


@pytest.mark.parametrize(("group", "root"), ROOTS)
def test_the_pods_are_found_below_another_root(node: Node, group: str, root: str | None) -> None:
    shutil.rmtree(node.root / "cgroup")
    node.group(group, used=990, limit="1000")
    found = Check(node.settings(look=("podThreads",), cgroup_root=root), AMPLE_S)()
    assert Finding(CheckState.FAILED, "threads of pods 990 of 1000") == found


def test_two_groups_that_may_be_the_pods_are_unknown(node: Node) -> None:
    shutil.rmtree(node.root / "cgroup")
    for group in ("a/kubepods", "b/kubepods"):
        node.group(group, used=990, limit="1000")
    found = Check(node.settings(look=("podThreads",)), AMPLE_S)()
    text = "{0}/a/kubepods and {0}/b/kubepods may each be the group of the pods: needs the kubelet's `cgroupRoot`"
    expected = text.format(node.root / "cgroup") + "; or leave podThreads out of `look`"
    assert Finding(CheckState.UNKNOWN, expected) == found


def test_pods_without_a_limit_are_not_counted(node: Node) -> None:
    node.group("kubepods.slice", used=10**6, limit="max")
    assert CheckState.PASSED is Check(node.settings(), AMPLE_S)().state


UNSEEN = [
    pytest.param("proc/pressure/io", "needs a kernel with pressure stall information", "io", id="no PSI"),
    pytest.param("proc/loadavg", "needs the proc file system", "threads", id="no loadavg"),
    pytest.param("cgroup/kubepods.slice/pids.max", "needs the pids controller", "podThreads", id="no pids controller"),
    pytest.param("cgroup/kubepods.slice", "has no group kubepods, kubepods.slice or", "podThreads", id="no such group"),
    pytest.param("cgroup", "needs the host's control groups", "podThreads", id="no groups"),
    pytest.param("proc/sys/fs/file-nr", "needs the proc file system", "files", id="no file-nr"),
]


@pytest.mark.parametrize(("gone", "needs", "thing"), UNSEEN)
def test_what_this_machine_does_not_have_is_left_out_and_said(node: Node, gone: str, needs: str, thing: str) -> None:
    path = node.root / gone
    path.unlink() if path.is_file() else shutil.rmtree(path)
    found = Check(node.settings(), AMPLE_S)()
    assert (CheckState.PASSED, True, True) == (
        found.state,
        needs in found.output,
        f"; {thing} left out: " in found.output,
    )


def test_a_machine_that_has_nothing_of_it_is_unknown(node: Node) -> None:
    shutil.rmtree(node.root / "proc")
    shutil.rmtree(node.root / "cgroup")
    assert CheckState.UNKNOWN is Check(node.settings(), AMPLE_S)().state


def test_what_is_there_and_cannot_be_read_is_unknown_and_can_be_left_out(node: Node) -> None:
    path = node.root / "proc/sys/fs/file-nr"
    path.unlink()
    path.mkdir()
    found = Check(node.settings(), AMPLE_S)()
    assert (CheckState.UNKNOWN, True) == (found.state, found.output.endswith("; or leave files out of `look`")), found
    rest = tuple(name for name in pressure.THINGS if name != "files")
    assert CheckState.PASSED is Check(node.settings(look=rest), AMPLE_S)().state


BROKEN = [
    ("proc/pressure/io", "some\n"),
    ("proc/pressure/io", "full avg60=x\n"),
    ("proc/loadavg", "1 2"),
    ("proc/sys/fs/file-nr", "1"),
]


@pytest.mark.parametrize(("path", "text"), BROKEN)
def test_what_does_not_parse_is_unknown(node: Node, path: str, text: str) -> None:
    node.file(path, text)
    assert CheckState.UNKNOWN is Check(node.settings(), AMPLE_S)().state


def test_what_fails_fails_beside_what_is_not_seen(node: Node) -> None:
    (node.root / "proc/loadavg").unlink()
    node.group("kubepods.slice", used=499)
    assert CheckState.FAILED is Check(node.settings(), AMPLE_S)().state


# Syncs, in a real folder

PUT_BY_A_POD = [
    pytest.param(os.mkfifo, id="a named pipe"),
    pytest.param(os.mkdir, id="a folder"),
    pytest.param(lambda path: path.symlink_to("/dev/full"), id="a link"),
]


def test_syncs_are_measured_and_leave_nothing_behind(node: Node, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    check = Check(node.settings(look=("files",), folder=str(folder), fsync_warn_milliseconds=3_600_000), AMPLE_S)
    found = [check(), check()]
    assert [CheckState.PASSED] * 2 == [one.state for one in found]
    assert ("; syncs p99 " in found[0].output, []) == (True, list(folder.iterdir()))
    assert 2 * pressure.SYNCS == len(check._syncs_s)


def test_a_sync_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    killed = f"import os\nos.fsync = lambda _: os.kill(os.getpid(), 9)\n{pressure._SYNC}"
    done = subprocess.run([sys.executable, "-c", killed, str(tmp_path), "3", "9"], capture_output=True, check=False)
    assert (-9, []) == (done.returncode, [*tmp_path.iterdir()])


def test_two_agents_may_have_one_folder(tmp_path: Path) -> None:
    """One has removed the file that the other has just opened."""
    other = "import os\nopen_ = os.open\ndef other(path, *more):\n    file = open_(path, *more)\n    os.unlink(path)\n"
    taken = f"{other}    return file\nos.open = other\n{pressure._SYNC}"
    done = subprocess.run([sys.executable, "-c", taken, str(tmp_path), "3", "9"], capture_output=True, check=False)
    assert (0, 3, b"") == (done.returncode, len(done.stdout.split()), done.stderr)


def test_slow_syncs_warn() -> None:
    facts = Facts(syncs_s=(*[0.001] * 98, 0.6, 0.7))
    assert Finding(CheckState.WARNED, "syncs p99 600 ms") == judge(facts, None, 0.0, Settings())


def test_slow_syncs_are_not_taken_for_one_that_hangs(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of them would not be back in time."""
    monkeypatch.setattr(pressure, "_SYNC", f"import os, time\nos.fsync = lambda _: time.sleep(3)\n{pressure._SYNC}")
    found = Check(node.settings(look=("files",), folder=str(tmp_path)), 8.0)()
    assert (CheckState.WARNED, True) == (found.state, found.output.startswith("syncs p99 3")), found


def test_a_folder_that_cannot_be_written_to_is_unknown(node: Node) -> None:
    found = Check(node.settings(folder="/proc"), AMPLE_S)()
    assert (CheckState.UNKNOWN, True) == (found.state, "needs a `folder` that can be written to" in found.output)


@pytest.mark.parametrize("put", PUT_BY_A_POD)
def test_what_a_pod_has_put_in_the_files_place_is_no_fault(
    node: Node, tmp_path: Path, put: Callable[[Path], object]
) -> None:
    put(tmp_path / ".readygate-fsync")
    check = Check(node.settings(look=("files",), folder=str(tmp_path), fsync_warn_milliseconds=3_600_000), AMPLE_S)
    assert (CheckState.PASSED, pressure.SYNCS) == (check().state, len(check._syncs_s))


def test_a_sync_that_does_not_come_back_is_hung_and_killed(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pressure, "_SYNC", f"import os, time\nos.fsync = lambda _: time.sleep(60)\n{pressure._SYNC}")
    found = Check(node.settings(folder=str(tmp_path)), 0.5)()
    assert Finding(CheckState.HUNG, f"a sync in {tmp_path} does not come back: killed after 0.45 s") == found


def test_the_kernel_of_this_machine_is_understood() -> None:
    facts = look(Settings())
    assert [line for line in (*facts.unseen, *facts.absent) if ": needs " not in line] == []
    assert [use for use in facts.uses if not 0 < use.used <= use.limit] == []
    assert [stall for stall in facts.stalls if not 0 <= stall.minute <= 100] == []
