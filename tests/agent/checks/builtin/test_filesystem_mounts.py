"""The check `filesystem`: which folders are mount points, and how many inodes are free."""

import random
from pathlib import Path

import pytest

from agent.checks.builtin.filesystem import (
    Check,
    Placed,
    Settings,
    Tried,
    inodes_of,
    judged,
    mounts_of,
    placed_of,
)
from agent.checks.state import CheckState, Finding
from component.settings import SettingsError, convert
from tools.kit.cases import cases

HOST = """22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
30 22 8:16 / /var/lib/containerd rw shared:2 - xfs /dev/sdb rw
31 22 0:35 /@data /data rw - btrfs /dev/sdc rw,subvolid=256,subvol=/@data
"""
ON_ROOT = "is not a mount point: it lies on / (ext4 of /dev/sda1)"
BIND = (
    "is a bind mount of {} of {}, so it is unknown whether the host has a mount there: "
    "name the folder that the disk is mounted on, or set mountinfo to the host's list"
)
ELSEWHERE = "is another folder in this list of mounts than for the agent: name it as the host does"
SERVICE_BIND = "40 22 8:1 /var/lib/kubelet /var/lib/kubelet rw - ext4 /dev/sda1 rw\n"
POD = "50 1 0:60 / / rw - overlay overlay rw,lowerdir=/a\n"


@cases(
    "mounts, path, failed, unknown",
    ("a disk is mounted there", HOST, "/var/lib/containerd", None, None),
    ("with a slash at its end", HOST, "/var/lib/containerd/", None, None),
    ("a subvolume of btrfs", HOST, "/data", None, None),
    ("the root itself", HOST, "/", None, None),
    (
        "eks-node-monitoring-agent#179: the disk is missing, its folder is there",
        HOST,
        "/var/lib/kubelet",
        ON_ROOT,
        None,
    ),
    (
        "a folder below the disk",
        HOST,
        "/var/lib/containerd/tmpmounts",
        "is not a mount point: it lies on /var/lib/containerd (xfs of /dev/sdb)",
        None,
    ),
    (
        "a service sees its folder through a bind mount of its own",
        HOST + SERVICE_BIND,
        "/var/lib/kubelet",
        ON_ROOT,
        None,
    ),
    (
        "a folder of the disk is mounted elsewhere",
        HOST + "41 22 8:16 /pods /var/lib/pods rw - xfs /dev/sdb rw\n",
        "/var/lib/pods",
        None,
        BIND.format("/pods", "/dev/sdb"),
    ),
    ("a pod, the disk is mounted", POD + "51 50 8:16 / /host/data rw - xfs /dev/sdb rw\n", "/host/data", None, None),
    (
        "a pod, and a folder of some file system",
        POD + "51 50 8:1 /data /host/data rw - ext4 /dev/sda1 rw\n",
        "/host/data",
        None,
        BIND.format("/data", "/dev/sda1"),
    ),
    ("an empty list", "", "/data", None, ELSEWHERE),
)
def test_whether_a_folder_is_a_mount_point(mounts: str, path: str, failed: str | None, unknown: str | None) -> None:
    own = mounts_of(mounts.encode())
    expected = Placed({path: failed} if failed else {}, {path: unknown} if unknown else {})
    assert expected == placed_of([path], own, own)


def test_the_list_of_the_host_decides_where_the_agent_has_bind_mounts_of_its_own() -> None:
    host, own = mounts_of(HOST.encode()), mounts_of((HOST + SERVICE_BIND).encode())
    found = placed_of(["/var/lib/kubelet", "/var/lib/containerd"], host, own)
    assert Placed({"/var/lib/kubelet": ON_ROOT}) == found


def test_the_list_of_the_host_says_nothing_of_a_path_of_the_pod() -> None:
    """`/host/data` is `/data` of the host, which has a disk there."""
    own = mounts_of((POD + "51 50 8:16 / /host/data rw - xfs /dev/sdb rw\n").encode())
    assert Placed(unknown={"/host/data": ELSEWHERE}) == placed_of(["/host/data"], mounts_of(HOST.encode()), own)


def test_no_drawn_list_makes_a_mounted_disk_fail(seed: int) -> None:
    """Each disk of the host is mounted whole. The agent sees some of its folders through bind mounts."""
    draw = random.Random(seed)
    for _ in range(300):
        points = draw.sample(["/a", "/a/b", "/c", "/c/d/e", "/f"], 3)
        lines = ["1 0 8:0 / / rw - ext4 /dev/sda rw"]
        lines += [f"{n} 1 8:{n} / {point} rw - xfs /dev/{n} rw" for n, point in enumerate(sorted(points), 2)]
        bound = draw.choice(["/a", "/a/b", "/c", "/c/d/e", "/f"])
        host = mounts_of("\n".join(lines).encode())
        found = max(
            (m for m in host if bound == m.point or bound.startswith(f"{m.point.rstrip('/')}/")),
            key=lambda m: len(m.point),
        )
        inner = "/" if bound == found.point else bound.removeprefix(found.point.rstrip("/"))
        own = mounts_of(
            "\n".join([*lines, f"9 1 {found.device} {inner} {bound} rw - {found.kind} {found.source} rw"]).encode()
        )
        paths = ["/a", "/a/b", "/c", "/c/d/e", "/f"]
        expected = {path for path in paths if path not in points}
        assert (expected, set()) == _sets(placed_of(paths, host, own))
        assert (expected, set()) == _sets(placed_of(paths, own, own))


def _sets(placed: Placed) -> tuple[set[str], set[str]]:
    return set(placed.failed), set(placed.unknown)


OK = Tried("/a", took_s=0.004)


@cases(
    "inodes, free, expected",
    ("enough", 1000, 900, (CheckState.PASSED, "900 of 1000 inodes are free")),
    ("nearly none", 1000, 50, (CheckState.WARNED, "50 of 1000 inodes are free (95 % in use)")),
    ("fewer than needed", 1000, 9, (CheckState.FAILED, "9 of 1000 inodes are free, needs 10")),
    ("falcon-plus#218: vfat and btrfs report none", 0, 0, (CheckState.PASSED, "")),
    ("monitoring-plugins#1599: CephFS reports -1 free ones", 204972, 2**64 - 1, (CheckState.PASSED, "")),
    ("awesome-prometheus-alerts#326: more free ones than there are", 0, 12, (CheckState.PASSED, "")),
)
def test_what_free_inodes_say(inodes: int, free: int, expected: tuple[CheckState, str]) -> None:
    tried = Tried("/a", took_s=0.004, inodes=inodes, free_inodes=free)
    assert expected == inodes_of(tried, Settings(min_free_inodes=10))


@cases(
    "tried, placed, state, words",
    (
        "a warning is said",
        Tried("/a", "", 0, 0.1, 100, 1),
        Placed(),
        "warned",
        "/a: 1 of 100 inodes are free (99 % in use)",
    ),
    ("a missing mount fails", OK, Placed({"/a": ON_ROOT}), "failed", f"/a: {ON_ROOT}"),
    ("what is unknown does not", OK, Placed(unknown={"/a": ELSEWHERE}), "unknown", f"/a: {ELSEWHERE}"),
    (
        "a failure counts more",
        Tried("/a", "open", 28),
        Placed(unknown={"/a": "x"}),
        "unknown",
        "/a: x; /a: the child process ended before it was tried",
    ),
)
def test_mounts_and_inodes_are_of_the_finding(tried: Tried, placed: Placed, state: str, words: str) -> None:
    assert Finding(CheckState(state), words) == judged(("/a",), {"/a": tried}, {}, Settings(), placed)


def test_the_check_reads_real_inodes_and_mounts(tmp_path: Path) -> None:
    found = Check(Settings((str(tmp_path),), mount_point="required"), 20.0)()
    assert CheckState.FAILED is found.state
    assert f"{tmp_path}: is not a mount point: it lies on " in found.output


def test_a_mount_point_cannot_be_required_without_a_list_of_mounts() -> None:
    allowed = "allowed: the kernel's list of mounts, as /proc/self/mountinfo"
    with pytest.raises(SettingsError, match=f"^mountinfo: is null, but mountPoint: required takes it, {allowed}$"):
        convert({"mountPoint": "required", "mountinfo": None}, Settings)
