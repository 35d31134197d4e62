"""What the control groups of the agent leave it of memory and processors.

A kubelet in a container reports its host: kubernetes #92638 and #97066 (LXD), cadvisor #2698 (kind, k3d).
"""

from fractions import Fraction
from pathlib import Path

import pytest

from agent.kubelet.node.cgroups import Limits, limits

VERSION_2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
VERSION_1 = "".join(f"c /sys/fs/cgroup/{name} cgroup rw,{name} 0 0\n" for name in ("memory", "cpu,cpuacct", "cpuset"))
HYBRID = VERSION_1 + "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
GIB = 2**30
NONE = Limits()


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("mounts", "groups", "files", "own", "expected"),
    [
        pytest.param(VERSION_2, "0::/\n", {}, True, NONE, id="the root group of a host has no limits"),
        pytest.param(
            VERSION_2,
            "0::/a.slice/b.service\n",
            {"a.slice/b.service/memory.max": "2147483648\n", "a.slice/b.service/cpu.max": "150000 100000\n"},
            True,
            Limits(Fraction(3, 2), 2 * GIB),
            id="its own group's",
        ),
        pytest.param(
            VERSION_2,
            "0::/a.slice/b.service\n",
            {
                "a.slice/b.service/memory.max": "max\n",
                "a.slice/b.service/cpu.max": "max 100000\n",
                "a.slice/memory.max": "1073741824\n",
                "a.slice/cpu.max": "50000 100000\n",
            },
            True,
            Limits(Fraction(1, 2), GIB),
            id="those of a group above it",
        ),
        pytest.param(
            VERSION_2,
            "0::/a.slice\n",
            {"a.slice/cpu.max": "400000 100000\n", "a.slice/cpuset.cpus.effective": "0-1,4\n"},
            True,
            Limits(Fraction(3)),
            id="a set of processors is a limit, too",
        ),
        pytest.param(
            VERSION_2,
            "0::/a.slice\n",
            {"a.slice/memory.max": "1073741824\n", "memory.max": "4294967296\n"},
            False,
            Limits(None, 4 * GIB),
            id="where a runtime has the containers, those of the machine alone count",
        ),
        pytest.param(
            VERSION_2,
            "0::/../other\n",
            {"memory.max": "1073741824\n"},
            True,
            Limits(None, GIB),
            id="a group outside of what is seen: what is seen counts",
        ),
        pytest.param(
            VERSION_1,
            "5:memory:/a\n4:cpu,cpuacct:/a\n3:cpuset:/\n0::/a\n",
            {
                "memory/a/memory.limit_in_bytes": "1073741824\n",
                "memory/memory.limit_in_bytes": "9223372036854771712\n",
                "cpu,cpuacct/a/cpu.cfs_quota_us": "25000\n",
                "cpu,cpuacct/a/cpu.cfs_period_us": "100000\n",
                "cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
                "cpu,cpuacct/cpu.cfs_period_us": "100000\n",
                "cpuset/cpuset.cpus": "0-7\n",
            },
            True,
            Limits(Fraction(1, 4), GIB),
            id="version 1",
        ),
        pytest.param(
            VERSION_1,
            "5:memory:/docker/x\n",
            {"memory/memory.limit_in_bytes": "1073741824\n"},
            True,
            Limits(None, GIB),
            id="cadvisor #2698: a container that sees its own group as the root",
        ),
        pytest.param(
            HYBRID,
            "5:memory:/a\n0::/b\n",
            {"memory/a/memory.limit_in_bytes": "1073741824\n", "unified/b/memory.max": "1\n"},
            True,
            Limits(None, GIB),
            id="both versions: the one that has the controller",
        ),
        pytest.param(
            VERSION_2,
            "0::/a\n",
            {"a/memory.max": "x\n", "a/cpu.max": "\n", "a/cpuset.cpus.effective": "\n"},
            True,
            NONE,
            id="what cannot be read is no limit",
        ),
        pytest.param("", "", {}, True, NONE, id="no control groups"),
    ],
)
def test_n103_limits(
    mounts: str, groups: str, files: dict[str, str], own: bool, expected: Limits, tmp_path: Path
) -> None:
    write(tmp_path, {"proc/self/mounts": mounts, "proc/self/cgroup": groups})
    write(tmp_path / "sys/fs/cgroup", files)
    assert expected == limits(tmp_path, own=own)


def test_a_machine_without_proc_has_no_limits(tmp_path: Path) -> None:
    assert limits(tmp_path, own=True) == NONE
