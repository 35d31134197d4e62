"""The check `filesystem`: can files be written where the node's pods need it?

For each of `mounts`: the kernel's list of mounts first (a file system that turned read-only, or was shut down after
an error, says so there), then a file is made, removed, written and flushed to the disk. What fails is named with the
operation and the error: `EROFS`, `EIO`, `ENOSPC`, `EDQUOT`.

The file is `.readygate-write-check`; its name goes before anything is written, so that a run that is killed leaves
none. What a pod that writes there has put in the place of that name is no fault: another one is taken. The work is
done by a child process: where a disk hangs, that child is killed and the check says hung, with the path. A child that
cannot be killed (state D) stays the only one: it is hung until it ends. The next run that succeeds is the way back;
nothing is remembered.

With `mountPoint: required` each of `mounts` must also be a mount point. Without it, a data disk that is missing goes
unnoticed: the folder is there, and the file is written on the file system below. Such a folder fails with the name of
that file system. The agent often sees the folder through a bind mount of its own: a volume of its pod, or
`ReadWritePaths=` of its service. A bind mount of a whole file system, or of a whole subvolume of btrfs, is a mount
point. A bind mount of a folder that lies on the file system around it is none.

With any other bind mount the check is unknown: name the folder that the disk is mounted on, or, as a service, set
`mountinfo: /proc/1/mountinfo`, the host's own list (it takes the host's processes and root). In a pod, name a folder at
which a volume of the pod is mounted. A disk that is mounted later is seen at the next run; one that is unmounted while
the agent has a bind mount of it is seen when the agent starts again.

```yaml
checks:
- name: data-disk
  filesystem: {mounts: [/var/lib/containerd], mountPoint: required, warnInodesPercent: 90, minFreeInodes: 1000}
```

Inodes run out before space does where pods write many small files; then no file can be made (`ENOSPC`). The check warns
from `warnInodesPercent` in use on, and fails below `minFreeInodes` free ones (0, the default: it fails when a file
cannot be made). A file system that has no fixed number of inodes (btrfs, vfat, CephFS) reports none, and is not judged.
On XFS and ZFS the number follows the free space, so a disk that is nearly full warns, too.

False alarms of other detectors that do not occur here, each with a test: falcon-plus#218, monitoring-plugins#1599 and
awesome-prometheus-alerts#326 (file systems without a number of inodes).

A full disk is a failure here as soon as nothing can be written any more; the kubelet's eviction comes before that.
A mount that is read-only for the agent alone (its own container, `ProtectSystem=`) is unknown, not failed.

Its timeout is five seconds unless said otherwise (with a shorter period: that): a disk under load takes long.
"""

import errno
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from agent.checks import tempfile_script
from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.processes.command import ExecTimeout, RuntimeUnavailable
from agent.processes.single import SingleCommand, StillThere, python_command
from agent.wire.setting_types import NonEmpty
from component.settings import Section

DOC = "a file can be made, written, flushed and removed on each of the mounts"
RIGHTS = Rights(writes=("mounts",), root=True)
TIMEOUT_S = 5  # a second is short for a disk under load
FILE = ".readygate-write-check"
# What the kernel writes among the options of a file system that takes no writes any more.
DEAD = ("ro", "shutdown", "emergency_ro")
NOT_OURS = (errno.EACCES, errno.EPERM)
OUTPUT_LIMIT_BYTES = 2**16
OWN_MOUNTINFO = "/proc/self/mountinfo"
_Percent = Annotated[int, Meta(ge=1, le=100, description="a whole number, 1 to 100")]

# A line as each path begins, one as it ends: what was going on when it hung is known. Told are pairs, a path and that
# as JSON: to import `json` would cost a process as much as its start.
SCRIPT = (
    tempfile_script.SCRIPT
    + """
import sys, time
def say(text):
    os.write(1, f"[{text}]\\n".encode())
for path, told in zip(sys.argv[2::2], sys.argv[3::2]):
    step, began = "open", time.monotonic()
    say(told)
    try:
        descriptor = nameless(path, sys.argv[1])
        step = "statvfs"
        kept = os.fstatvfs(descriptor)
        inodes = f"{kept.f_files}, {kept.f_ffree}"
        step = "write"
        os.write(descriptor, b"readygate\\n" * 100)
        step = "fsync"
        os.fsync(descriptor)
        step = "close"
        os.close(descriptor)
        say(f'{told}, "", 0, {time.monotonic() - began}, {inodes}')
    except OSError as e:
        say(f'{told}, "{step}", {e.errno}, {time.monotonic() - began}')
"""
)


class Settings(Section, frozen=True):
    """Folders, as the agent sees them. `mountinfo`: the kernel's list of mounts, None: it is not looked at.
    `mount_point`: whether each folder must be a mount point. `min_free_inodes` 0: not looked at."""

    mounts: Annotated[tuple[NonEmpty, ...], Meta(min_length=1, description="a list of one folder or more")] = (
        "/var/lib/kubelet",
    )
    mountinfo: NonEmpty | None = OWN_MOUNTINFO
    mount_point: Literal["any", "required"] = "any"
    warn_inodes_percent: _Percent = 95
    min_free_inodes: Annotated[int, Meta(ge=0, le=2**40, description="a whole number, 0 or more")] = 0

    def __post_init__(self) -> None:
        if self.mount_point == "required" and self.mountinfo is None:
            allowed = f"the kernel's list of mounts, as {OWN_MOUNTINFO}"
            raise ValueError(f"mountinfo: is null, but mountPoint: required takes it, allowed: {allowed}")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of the kernel's list. `root`: the folder of the file system that is mounted. `device`: its number."""

    point: str
    options: frozenset[str]  # of this mount
    super_options: frozenset[str]  # of the file system, whatever mount it is reached by
    kind: str
    source: str
    root: str = "/"
    device: str = ""


@dataclass(frozen=True, slots=True)
class Tried:
    """The result for one path. `step`: the operation that failed, empty where all went well."""

    path: str
    step: str = ""
    error: int = 0  # an errno
    took_s: float | None = None  # None: it did not end
    inodes: int = 0  # of the file system; 0: it has no fixed number
    free_inodes: int = 0


class Check:
    def __init__(self, settings: Settings, timeout_s: float) -> None:
        self._mounts = settings.mounts
        self._mountinfo = settings.mountinfo
        self._settings = settings
        self._timeout_s = timeout_s
        self._last_path = ""
        words = (word for path in settings.mounts for word in (path, json.dumps(path)))
        self._command = SingleCommand(python_command(SCRIPT, FILE, *words), output_limit_bytes=OUTPUT_LIMIT_BYTES)

    def __call__(self) -> Finding:
        """PASSED, FAILED with operation and error, HUNG with the path, UNKNOWN where the agent may not write."""
        required = self._settings.mount_point == "required"
        try:
            mounts = mounts_of(Path(self._mountinfo).read_bytes()) if self._mountinfo else ()
            is_own = not required or self._mountinfo == OWN_MOUNTINFO
            own = mounts if is_own else mounts_of(Path(OWN_MOUNTINFO).read_bytes())
        except OSError as e:
            return Finding(CheckState.UNKNOWN, f"cannot look at {e.filename}: {e.strerror}")
        dead = {path: words for path in self._mounts if (words := dead_words(mount_of(path, mounts)))}
        if dead:
            return Finding(CheckState.FAILED, "; ".join(f"{path}: {words}" for path, words in dead.items()))
        try:
            done = self._command.run(self._timeout_s)
        except StillThere as e:
            return Finding(CheckState.HUNG, f"{self._last_path}: {e}")
        except ExecTimeout as e:
            tried = tried_of(e.output)
            self._last_path = next((t.path for t in tried.values() if t.took_s is None), self._mounts[0])
            return Finding(CheckState.HUNG, f"{self._last_path}: no end after {self._timeout_s:g} s")
        except RuntimeUnavailable as e:
            return Finding(CheckState.UNKNOWN, str(e))
        found = {path: mount for path in self._mounts if (mount := mount_of(path, mounts)) is not None}
        placed = placed_of(self._mounts, mounts, own) if required else Placed()
        return judged(self._mounts, tried_of(done.stdout), found, self._settings, placed)


@dataclass(frozen=True, slots=True)
class Placed:
    """Why folders are no mount points, and why that cannot be known of others; both by path."""

    failed: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)


def placed_of(paths: Sequence[str], mounts: Sequence[Mount], own: Sequence[Mount]) -> Placed:
    """Which of these folders are mount points. `mounts`: the list that decides, either `own`, which has bind mounts of
    the agent, or the host's."""
    failed, unknown = dict[str, str](), dict[str, str]()
    for path in paths:
        point, mount, here = os.path.normpath(path), mount_of(path, mounts), mount_of(path, own)
        around = mount_of(path, [each for each in mounts if each.point != point])
        if mount is None or here is None or mount.device != here.device:
            unknown[path] = "is another folder in this list of mounts than for the agent: name it as the host does"
        elif mount.point != point:
            failed[path] = f"is not a mount point: {_on(mount)}"
        elif mounts is not own or _is_whole(mount):
            continue
        elif around is not None and _lies_on(mount, around):
            failed[path] = f"is not a mount point: {_on(around)}"
        else:
            unknown[path] = (
                f"is a bind mount of {mount.root} of {mount.source}, so it is unknown whether the host has a mount "
                "there: name the folder that the disk is mounted on, or set mountinfo to the host's list"
            )
    return Placed(failed, unknown)


def _on(mount: Mount) -> str:
    return f"it lies on {mount.point} ({mount.kind} of {mount.source})"


def _is_whole(mount: Mount) -> bool:
    """The root of a file system, or a subvolume of btrfs."""
    return mount.root == "/" or (mount.kind == "btrfs" and f"subvol={mount.root}" in mount.super_options)


def _lies_on(mount: Mount, around: Mount) -> bool:
    """A folder that is mounted on itself, as by the agent's own service."""
    inner = os.path.join(around.root, os.path.relpath(mount.point, around.point))  # noqa: PTH118 - as the list has it
    return (mount.device, mount.root) == (around.device, inner)


def judged(
    paths: Sequence[str],
    tried: Mapping[str, Tried],
    mounts: Mapping[str, Mount],
    settings: Settings,
    placed: Placed,
) -> Finding:
    """What the child found, in one finding: a failure counts more than what could not be tried. `mounts`: by path."""
    failed = [f"{path}: {words}" for path, words in placed.failed.items()]
    blind = [f"{path}: {words}" for path, words in placed.unknown.items()]
    warned, passed = list[str](), list[str]()
    for path in paths:
        attempt = tried.get(path)
        if attempt is None or attempt.took_s is None:
            blind.append(f"{path}: the child process ended before it was tried")
        elif not attempt.step:
            passed.append(f"{path} {attempt.took_s * 1000:.0f} ms")
            state, words = inodes_of(attempt, settings)
            into = {CheckState.FAILED: failed, CheckState.WARNED: warned}.get(state)
            if into is not None:
                into.append(f"{path}: {words}")
        elif attempt.error in NOT_OURS:
            blind.append(f"{path}: the agent may not write: {_name(attempt)}")
        elif attempt.error == errno.EROFS and path in mounts and "ro" in mounts[path].options:
            blind.append(f"{path}: mounted read-only for the agent: grant it a writable mount")
        else:
            failed.append(f"{path}: {_name(attempt)}")
    if failed:
        return Finding(CheckState.FAILED, "; ".join(failed))
    if blind:
        return Finding(CheckState.UNKNOWN, "; ".join(blind))
    if warned:
        return Finding(CheckState.WARNED, "; ".join(warned))
    return Finding(CheckState.PASSED, ", ".join(passed))


def inodes_of(tried: Tried, settings: Settings) -> tuple[CheckState, str]:
    """A file system without a fixed number of inodes reports none, or more free ones than it has: it is not judged."""
    if not 0 <= tried.free_inodes <= tried.inodes or not tried.inodes:
        return CheckState.PASSED, ""
    percent = 100 * (tried.inodes - tried.free_inodes) / tried.inodes
    words = f"{tried.free_inodes} of {tried.inodes} inodes are free"
    if tried.free_inodes < settings.min_free_inodes:
        return CheckState.FAILED, f"{words}, needs {settings.min_free_inodes}"
    if percent >= settings.warn_inodes_percent:
        return CheckState.WARNED, f"{words} ({percent:.0f} % in use)"
    return CheckState.PASSED, words


def mounts_of(mountinfo: bytes) -> tuple[Mount, ...]:
    """The mounts of /proc/PID/mountinfo, in its order. A line of another shape is left out."""
    found = []
    for line in mountinfo.decode(errors="surrogateescape").splitlines():
        left, _, right = line.partition(" - ")
        mount, fields = left.split(" "), right.split(" ")
        if len(mount) < 6 or len(fields) < 3:
            continue
        point, options = _unescaped(mount[4]), frozenset(mount[5].split(","))
        root, source = _unescaped(mount[3]), _unescaped(fields[1])
        found.append(Mount(point, options, frozenset(fields[2].split(",")), fields[0], source, root, mount[2]))
    return tuple(found)


def mount_of(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """The mount that a path is on: of the deepest mount points that lead to it the one mounted last."""
    clean = os.path.normpath(path)
    leading = [m for m in mounts if m.point in ("/", clean) or clean.startswith(f"{m.point}/")]
    return max(enumerate(leading), key=lambda found: (len(found[1].point), found[0]))[1] if leading else None


def dead_words(mount: Mount | None) -> str:
    """Why nothing can be written on a file system, by its own options; empty where that is not said."""
    words = [word for word in DEAD if mount is not None and word in mount.super_options]
    if mount is None or not words:
        return ""
    state = "is read-only" if words == ["ro"] else f"is {', '.join(words)}"
    return f"the file system {state} ({mount.kind} of {mount.source})"


def tried_of(output: bytes) -> dict[str, Tried]:
    """By path, from the child's lines; one that is cut off is left out."""
    found: dict[str, Tried] = {}
    for line in output.splitlines():
        try:
            words = json.loads(line)
        except ValueError:
            continue
        if isinstance(words, list) and words and isinstance(words[0], str):
            found[words[0]] = Tried(*words[:6]) if len(words) >= 4 else Tried(words[0])
    return found


def _name(tried: Tried) -> str:
    return f"{tried.step}: {errno.errorcode.get(tried.error, tried.error)} ({os.strerror(tried.error)})"


def _unescaped(text: str) -> str:
    """The kernel writes blanks and backslashes as octal numbers."""
    for code in ("040", "011", "012", "134"):
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text
