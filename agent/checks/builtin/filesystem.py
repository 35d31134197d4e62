"""The check `filesystem`: can files be written where the node's pods need it?

For each of `mounts`: the kernel's list of mounts first (a file system that turned read-only, or was shut down after
an error, says so there), then a file is made, removed, written and flushed to the disk. What fails is named with the
operation and the error: `EROFS`, `EIO`, `ENOSPC`, `EDQUOT`.

The file is `.readygate-write-check`; its name goes before anything is written, so that a run that is killed leaves
none. What a pod that writes there has put in the place of that name is no fault: another one is taken. The work is
done by a child process: where a disk hangs, that child is killed and the check says hung, with the path. A child that
cannot be killed (state D) stays the only one: it is hung until it ends. The next run that succeeds is the way back;
nothing is remembered.

Whether something is mounted on a folder is not looked at: where its disk is not there, but the folder is, the file is
written on the file system below.

A full disk is a failure here as soon as nothing can be written any more; the kubelet's eviction comes before that.
A mount that is read-only for the agent alone (its own container, `ProtectSystem=`) is unknown, not failed.

Its timeout is five seconds unless said otherwise (with a shorter period: that): a disk under load takes long.
"""

import errno
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from agent.checks import nameless
from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.keys import NonEmpty
from agent.processes.command import ExecTimeout, RuntimeUnavailable
from agent.processes.single import SingleCommand, StillThere, python_command
from component.settings import Section

DOC = "a file can be made, written, flushed and removed on each of the mounts"
RIGHTS = Rights(writes=("mounts",), root=True)
TIMEOUT_S = 5  # a second is short for a disk under load
FILE = ".readygate-write-check"
# What the kernel writes among the options of a file system that takes no writes any more.
DEAD = ("ro", "shutdown", "emergency_ro")
NOT_OURS = (errno.EACCES, errno.EPERM)
OUTPUT_LIMIT_BYTES = 2**16

# A line as each path begins, one as it ends: what was going on when it hung is known. Told are pairs, a path and that
# as JSON: to import `json` would cost a process as much as its start.
SCRIPT = (
    nameless.SCRIPT
    + """
import sys, time
def say(text):
    os.write(1, f"[{text}]\\n".encode())
for path, told in zip(sys.argv[2::2], sys.argv[3::2]):
    step, began = "open", time.monotonic()
    say(told)
    try:
        descriptor = nameless(path, sys.argv[1])
        step = "write"
        os.write(descriptor, b"readygate\\n" * 100)
        step = "fsync"
        os.fsync(descriptor)
        step = "close"
        os.close(descriptor)
        say(f'{told}, "", 0, {time.monotonic() - began}')
    except OSError as e:
        say(f'{told}, "{step}", {e.errno}, {time.monotonic() - began}')
"""
)


class Settings(Section, frozen=True):
    """Folders, as the agent sees them. `mountinfo`: the kernel's list of mounts, None: it is not looked at."""

    mounts: Annotated[tuple[NonEmpty, ...], Meta(min_length=1, description="a list of one folder or more")] = (
        "/var/lib/kubelet",
    )
    mountinfo: NonEmpty | None = "/proc/self/mountinfo"


@dataclass(frozen=True, slots=True)
class Mount:
    """`options`: of the mount; `super_options`: of the file system under it, whoever mounts it."""

    point: str
    options: frozenset[str]
    super_options: frozenset[str]
    kind: str
    source: str


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of one path. `step` is empty where all went well; `error`: an errno; `took_s` None: it did not end."""

    path: str
    step: str = ""
    error: int = 0
    took_s: float | None = None


class Check:
    def __init__(self, settings: Settings, timeout_s: float) -> None:
        self._mounts = settings.mounts
        self._mountinfo = settings.mountinfo
        self._timeout_s = timeout_s
        self._last_path = ""
        words = (word for path in settings.mounts for word in (path, json.dumps(path)))
        self._command = SingleCommand(python_command(SCRIPT, FILE, *words), output_limit_bytes=OUTPUT_LIMIT_BYTES)

    def __call__(self) -> Finding:
        """PASSED, FAILED with operation and error, HUNG with the path, UNKNOWN where the agent may not write."""
        try:
            mounts = mounts_of(Path(self._mountinfo).read_bytes()) if self._mountinfo else ()
        except OSError as e:
            return Finding(CheckState.UNKNOWN, f"cannot look at {self._mountinfo}: {e.strerror}")
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
        return judged(self._mounts, tried_of(done.stdout), found)


def judged(paths: Sequence[str], tried: Mapping[str, Tried], mounts: Mapping[str, Mount]) -> Finding:
    """What the child found, in one finding: a failure counts more than what could not be tried. `mounts`: by path."""
    failed, blind, passed = [], [], []
    for path in paths:
        attempt = tried.get(path)
        if attempt is None or attempt.took_s is None:
            blind.append(f"{path}: the child process ended before it was tried")
        elif not attempt.step:
            passed.append(f"{path} {attempt.took_s * 1000:.0f} ms")
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
    return Finding(CheckState.PASSED, ", ".join(passed))


def mounts_of(mountinfo: bytes) -> tuple[Mount, ...]:
    """The mounts of /proc/PID/mountinfo, in its order. A line of another shape is left out."""
    found = []
    for line in mountinfo.decode(errors="surrogateescape").splitlines():
        left, _, right = line.partition(" - ")
        mount, fields = left.split(" "), right.split(" ")
        if len(mount) < 6 or len(fields) < 3:
            continue
        point, options = _unescaped(mount[4]), frozenset(mount[5].split(","))
        found.append(Mount(point, options, frozenset(fields[2].split(",")), fields[0], _unescaped(fields[1])))
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
            found[words[0]] = Tried(words[0], *words[1:4]) if len(words) == 4 else Tried(words[0])
    return found


def _name(tried: Tried) -> str:
    return f"{tried.step}: {errno.errorcode.get(tried.error, tried.error)} ({os.strerror(tried.error)})"


def _unescaped(text: str) -> str:
    """The kernel writes blanks and backslashes as octal numbers."""
    for code in ("040", "011", "012", "134"):
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text
