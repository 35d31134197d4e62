"""The limits that control groups set: how much of the machine's memory and processors is left.

A kubelet reports the whole machine, wherever it runs. Containers that are processes of the agent's own get no more than
its group and the groups above it have. Those of a container runtime have groups of their own; for them the limits of
the topmost group count, which has some only where the machine itself is a container.
"""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True)
class Limits:
    """None: there is no limit. `processors`: of time, or of the processors that may be used."""

    processors: Fraction | None = None
    memory_bytes: int | None = None


def limits(root: Path, *, own: bool) -> Limits:
    """`own`: of the agent's group and all above it, else of the topmost group alone. Unreadable files are no limits."""
    memory = [
        _number(_text(f / "memory.max") or _text(f / "memory.limit_in_bytes")) for f in _folders(root, "memory", own)
    ]
    processors = [_quota(folder) for folder in _folders(root, "cpu", own)]
    sets = (
        _text(folder / "cpuset.cpus.effective") or _text(folder / "cpuset.cpus")
        for folder in _folders(root, "cpuset", own)
    )
    processors += [Fraction(count) if (count := count_of(text)) else None for text in sets]
    return Limits(
        min((p for p in processors if p is not None), default=None),
        min((m for m in memory if m is not None), default=None),
    )


def count_of(processors: str) -> int:
    """How many a list of the kernel's has, as 0-3,7; 0 where it is none."""
    found = 0
    for part in processors.strip().split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            return 0
        found += int(last) - int(first) + 1 if dash else 1
    return found


def _folders(root: Path, controller: str, own: bool) -> list[Path]:
    """The groups whose limits of this controller count, the agent's own first."""
    found = _mount(root, controller)
    if found is None:
        return []
    mount, version = found
    top = root / mount.lstrip("/")
    group = PurePosixPath(_group(root, controller if version == 1 else ""))
    if not own or ".." in group.parts:
        return [top]
    return [top / str(each).lstrip("/") for each in (group, *group.parents)]


def _mount(root: Path, controller: str) -> tuple[str, int] | None:
    """Where the hierarchy with the controller is mounted, and its version."""
    whole = None
    for line in _text(root / "proc/self/mounts").splitlines():
        _, place, kind, options, *_ = [*line.split(" "), "", "", ""]
        if kind == "cgroup" and controller in options.split(","):
            return place, 1
        if kind == "cgroup2" and whole is None:
            whole = place, 2
    return whole


def _group(root: Path, controller: str) -> str:
    """The agent's, in the hierarchy with the controller; "" is the one of version 2."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        if controller in controllers.split(","):
            return group
    return "/"


def _quota(folder: Path) -> Fraction | None:
    words = _text(folder / "cpu.max").split()
    if not words:
        words = [_text(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    quota, period = (_number(word) for word in [*words, "", ""][:2])
    return Fraction(quota, period) if quota and period else None


def _number(text: str) -> int | None:
    return int(text) if (text := text.strip()).isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
