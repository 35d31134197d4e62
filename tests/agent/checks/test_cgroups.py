"""Where the control group of all pods is, by the kubelet's cgroupRoot and by search."""

from pathlib import Path

import pytest

from agent.checks import cgroups
from agent.checks.cgroups import group_of_pods
from agent.checks.kernel_files import CannotLookError, NotThereError
from tools.kit.cases import cases

CONTAINER = "0123456789abcdef" * 4
ERRORS = {NotThereError: "none", CannotLookError: "unknown"}


def machine(root: Path, groups: str) -> None:
    """Groups, by blanks; `=N`: with so many threads, `!`: with the pids controller off."""
    for word in groups.split():
        name, _, threads = word.rstrip("!").partition("=")
        (root / name).mkdir(parents=True, exist_ok=True)
        if not word.endswith("!"):
            (root / name / "pids.current").write_text(f"{threads or 0}\n")


def found(root: Path, cgroup_root: str | None) -> str:
    try:
        return group_of_pods(str(root), cgroup_root).removeprefix(f"{root}/")
    except CannotLookError as e:
        return ERRORS[type(e)]


KIND = "kubelet.slice/kubelet-kubepods.slice"
DEEP = "a.slice/a-b_c.slice/a-b_c-kubepods.slice"


@cases(
    "groups, cgroup_root, expected",
    ("systemd's driver", "init.scope system.slice kubepods.slice=9", None, "kubepods.slice"),
    ("cgroupfs, version 1", "pids/kubepods=9 pids/docker cpu/kubepods", None, "pids/kubepods"),
    ("a group called pids, version 2", "cgroup.controllers pids kubepods=9", None, "kubepods"),
    ("kubernetes-sigs/kind#2737, by search", f"kubelet {KIND}=9 system.slice/a.service", None, KIND),
    ("kubernetes-sigs/kind#2737, by its configuration", f"kubelet {KIND}=9", "/kubelet", KIND),
    ("kubernetes/minikube#4770: the other driver", "kubelet/kubepods=9 kubelet.slice", "/kubelet", "kubelet/kubepods"),
    (
        "kubernetes/kubernetes#49281: as 1.7 did",
        "container.slice/kubepods.slice=9",
        "/container.slice",
        "container.slice/kubepods.slice",
    ),
    ("kubernetes/kubernetes#92175: a root of two levels, with a dash", f"{DEEP}=9", "/a/b-c", DEEP),
    ("the same, by search", f"{DEEP}=9", None, DEEP),
    ("a root without a slash", f"{KIND}=9", "kubelet", KIND),
    ("another root than was configured", f"{KIND}=9", "/pods", KIND),
    ("kubernetes/kubeadm#1501: a leftover of the other driver", "kubepods kubepods.slice=9", None, "kubepods.slice"),
    ("a leftover of another root", f"kubepods.slice {KIND}=9", None, KIND),
    ("the configuration comes before a leftover", f"kubepods.slice {KIND}=9", "/", "kubepods.slice"),
    ("no pod runs", "kubepods.slice", None, "kubepods.slice"),
    ("no pod runs, below another root", KIND, None, KIND),
    ("without the pids controller", "kubepods.slice!", None, "kubepods.slice"),
    (
        "a kubelet in a container, beside this node's",
        f"kubepods.slice docker/{CONTAINER}/kubepods=9",
        None,
        "kubepods.slice",
    ),
    (
        "kubelets in containers alone",
        f"docker/{CONTAINER}/kubepods=9 system.slice/docker-1.scope/{KIND}=9 lxc.payload.a/kubepods=9",
        None,
        "none",
    ),
    ("below the pods", "kubepods.slice=9 kubepods.slice/kubepods-burstable.slice/x/kubepods=9", None, "kubepods.slice"),
    (
        "a rootless kubelet",
        "user.slice/user-1.slice/user@1.service/app.slice/k.service/kubepods=9",
        None,
        "user.slice/user-1.slice/user@1.service/app.slice/k.service/kubepods",
    ),
    ("beyond the levels that are searched", "a/b/c/d/e/f/kubepods=9", None, "none"),
    ("two that may be it", "a/kubepods=9 b/kubepods.slice=9", None, "unknown"),
    ("two of both drivers without a pod", "kubepods kubepods.slice", "/", "kubepods.slice"),
    ("two of both drivers", "kubepods=9 kubepods.slice=9", "/", "unknown"),
    ("cgroupsPerQOS is off: there is none", "init.scope system.slice burstable", None, "none"),
    ("names that only begin alike", "kubepods-burstable.slice=9 kubepods2=9 mykubepods.slice=9", None, "none"),
)
def test_it_is_found(tmp_path: Path, groups: str, cgroup_root: str | None, expected: str) -> None:
    machine(tmp_path, groups)
    assert expected == found(tmp_path, cgroup_root)


def test_why_it_is_not_found_is_what_was_looked_for(tmp_path: Path) -> None:
    machine(tmp_path, "system.slice")
    for root, text in (
        (tmp_path, "has no group kubepods,"),
        (tmp_path / "no", "is not there: needs the host's control"),
    ):
        with pytest.raises(NotThereError, match=text):
            group_of_pods(str(root), None)


def test_a_search_that_cannot_end_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, "a b c/d")
    monkeypatch.setattr(cgroups, "AT_MOST", 2)
    with pytest.raises(CannotLookError, match="more than 2 groups: needs the kubelet's `cgroupRoot`") as raised:
        group_of_pods(str(tmp_path), None)
    assert not isinstance(raised.value, NotThereError)


def test_a_group_that_cannot_be_opened_is_unknown_unless_the_pods_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(tmp_path, "a b/kubepods=9")
    scandir = cgroups.os.scandir

    def refused(path: str) -> object:
        if path.endswith("/a"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(cgroups.os, "scandir", refused)
    assert "b/kubepods" == found(tmp_path, None)
    (tmp_path / "b/kubepods/pids.current").unlink()
    (tmp_path / "b/kubepods").rmdir()
    with pytest.raises(CannotLookError, match="a cannot be read"):
        group_of_pods(str(tmp_path), None)


def test_a_folder_that_cannot_be_searched_is_not_one_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cgroups.Path, "exists", refused)
    with pytest.raises(CannotLookError, match=r"cannot be read \(Permission denied\)") as raised:
        group_of_pods(str(tmp_path), None)
    assert not isinstance(raised.value, NotThereError)
