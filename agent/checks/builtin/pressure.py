"""The built-in check `pressure`: does the node stand still, or is it about to run out of something the kernel counts?

It warns first, and leaves memory and disk space to the kubelet's eviction, which it never repeats:

| `look` | what is read | warns | fails |
|---|---|---|---|
| `io`, `memory` | /proc/pressure: the part of the time in which nobody got on | `ioWarnPercent`, `memoryWarnPercent` | `ioFailPercent`; memory never |
| `cpu` | the same: in which somebody waited | `cpuWarnPercent` | never |
| `threads` | all threads of the node, against `pid_max` and `threads-max` | `warnPercent` | `failPercent` |
| `podThreads` | those of all pods, against the `pids.max` of their control group | `warnPercent` | `failPercent` |
| `files` | open files, against `file-max` | `warnPercent` | `failPercent` |

What this machine does not have is left out, and said: a kernel without PSI, a node without a control group of its pods.
What is there and cannot be read is unknown, and so is a machine that has nothing of it all.

The group of the pods is where the kubelet makes it by its `cgroupRoot`, whatever its cgroup driver. Where that is not
set here, or nothing is there, all groups are searched for one of the names that kubelets give, but for those of
containers. Of several, those without a thread are leftovers; if two are left, `podThreads` is unknown.

A stall counts where it was so over a minute and between the last two runs too: so it is over as soon as it is over. With
`folder` a child process writes and syncs a small file there; the 99th percentile of the last hundred syncs warns from
`fsyncWarnMilliseconds` on, and a sync that does not come back is hung. There are three a run, fewer where they are slow;
the timeout is five seconds unless said otherwise (with a shorter period: that). On a node where little else runs one pod that does
nothing but sync, or that may write only so much a second, makes it look as if everybody stood still: with `folder` that
warns alone while our own syncs take less than a tenth of a second.
"""  # noqa: E501 - a table

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from agent.checks import tempfile_script
from agent.checks.cgroups import group_of_pods
from agent.checks.kernel_files import CannotLookError, NotThereError, number_of, text_of
from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.processes.command import ExecTimeout, RuntimeUnavailable
from agent.processes.single import SingleCommand, StillThere, python_command
from agent.wire.setting_types import NonEmpty
from component.settings import Section

DOC = "nobody stands still for want of a disk, and threads, threads of pods and open files are not used up"
RIGHTS = Rights(reads=("cgroup",), writes=("folder",))
TIMEOUT_S = 5  # a second is short for a disk under load
SYNCS = 3  # a run, where they are quick
LATEST = 0.3  # of the timeout: then no other one is begun, so that slow ones are told as slow, and not as hung
KEPT_SYNCS = 100
FELT_S = 0.1  # chosen: what a disk takes that others keep busy
USABLE = 0.9  # of the timeout: what is left is for the verdict

Thing = Literal["io", "memory", "cpu", "threads", "podThreads", "files"]
THINGS: tuple[Thing, ...] = ("io", "memory", "cpu", "threads", "podThreads", "files")
_Percent = Annotated[int, Meta(ge=1, le=100, description="a whole number, 1 to 100")]

_SYNC = (
    tempfile_script.SCRIPT
    + """
import sys, time
until = time.monotonic() + float(sys.argv[3])
file, turns = nameless(sys.argv[1], ".readygate-fsync"), int(sys.argv[2])
for turn in range(turns):
    if turn and time.monotonic() > until:
        break
    os.pwrite(file, os.urandom(4096), 0)
    began = time.monotonic()
    os.fsync(file)
    print(time.monotonic() - began, flush=True)
"""
)


class Settings(Section, frozen=True):
    """`cgroup_root`: as in the kubelet's configuration; None: the pods' group is searched for."""

    look: Annotated[tuple[Thing, ...], Meta(min_length=1, description="a list of what to look at")] = THINGS
    io_warn_percent: _Percent = 40
    io_fail_percent: _Percent = 95
    memory_warn_percent: _Percent = 20
    cpu_warn_percent: _Percent = 95
    warn_percent: _Percent = 80
    fail_percent: _Percent = 95
    folder: NonEmpty | None = None
    fsync_warn_milliseconds: Annotated[int, Meta(ge=1, description="a whole number, 1 or more")] = 500
    proc: NonEmpty = "/proc"
    cgroup: NonEmpty = "/sys/fs/cgroup"
    cgroup_root: NonEmpty | None = None


@dataclass(frozen=True, slots=True)
class Stall:
    """`minute`, `now`: percent of the last minute, and of the last ten seconds. `total_s`: since the boot."""

    name: str
    minute: float
    now: float
    total_s: float


@dataclass(frozen=True, slots=True)
class Use:
    name: str
    used: int
    limit: int


@dataclass(frozen=True, slots=True)
class Facts:
    """`unseen`: one line for each thing that could not be looked at. `absent`: one for each that this machine does not
    have. `syncs_s`: the last ones, by the oldest."""

    stalls: tuple[Stall, ...] = ()
    uses: tuple[Use, ...] = ()
    unseen: tuple[str, ...] = ()
    syncs_s: tuple[float, ...] = ()
    absent: tuple[str, ...] = ()


class Check:
    def __init__(self, settings: Settings, timeout_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._limit_s = USABLE * timeout_s
        self._monotonic = monotonic
        self._before: tuple[Facts, float] | None = None
        self._syncs_s = deque[float](maxlen=KEPT_SYNCS)
        words = (settings.folder or "", str(SYNCS), f"{LATEST * timeout_s:g}")
        self._sync = SingleCommand(python_command(_SYNC, *words)) if settings.folder else None

    def __call__(self) -> Finding:
        """PASSED, WARNED, FAILED, HUNG where a sync does not come back, UNKNOWN for what is not to be seen."""
        try:
            missing = self._synced()
        except (ExecTimeout, StillThere) as e:
            why = str(e) if isinstance(e, StillThere) else f"killed after {self._limit_s:g} s"
            return Finding(CheckState.HUNG, f"a sync in {self._settings.folder} does not come back: {why}")
        facts, now = look(self._settings, (*self._syncs_s,), missing), self._monotonic()
        before, seconds = (self._before[0], now - self._before[1]) if self._before else (None, 0.0)
        self._before = facts, now
        return judge(facts, before, seconds, self._settings)

    def _synced(self) -> list[str]:
        """What kept us from it. Raises ExecTimeout, StillThere."""
        if self._sync is None:
            return []
        try:
            done = self._sync.run(self._limit_s)
        except RuntimeUnavailable as e:
            return [str(e)]
        if done.exit_code:
            words = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.exit_code}"]
            return [f"{words[-1]}: needs a `folder` that can be written to"]
        self._syncs_s.extend(float(line) for line in done.stdout.split())
        return []


def look(settings: Settings, syncs_s: tuple[float, ...] = (), missing: Sequence[str] = ()) -> Facts:
    stalls, uses, unseen, absent = list[Stall](), list[Use](), [*missing], list[str]()
    for thing in settings.look:
        try:
            match thing:
                case "io" | "memory" | "cpu":
                    stalls.append(_stall(settings.proc, thing))
                case "threads":
                    uses.append(_threads(settings.proc))
                case "podThreads":
                    uses += _pod_threads(settings.cgroup, settings.cgroup_root)
                case "files":
                    uses.append(_files(settings.proc))
        except NotThereError as e:
            absent.append(f"{thing} left out: {e}")
        except CannotLookError as e:
            unseen.append(f"{e}; or leave {thing} out of `look`")
    return Facts(tuple(stalls), tuple(uses), tuple(unseen), syncs_s, tuple(absent))


def judge(facts: Facts, before: Facts | None, seconds: float, settings: Settings) -> Finding:
    """`seconds`: between the two."""
    earlier = {stall.name: stall.total_s for stall in before.stalls} if before and seconds > 0 else {}
    warn = {
        "io": settings.io_warn_percent,
        "memory": settings.memory_warn_percent,
        "cpu": settings.cpu_warn_percent,
    }
    felt = not facts.syncs_s or max(facts.syncs_s[-SYNCS:]) >= FELT_S
    failed, warned, well = list[str](), list[str](), list[str]()
    for stall in facts.stalls:
        past_s = earlier.get(stall.name)
        now = stall.now if past_s is None else 100 * (stall.total_s - past_s) / seconds
        least, text = min(stall.minute, now), f"{stall.name} stalled {stall.minute:.0f} % of a minute"
        fails = stall.name == "io" and least >= settings.io_fail_percent
        if fails and not felt:
            fails, text = False, f"{text}, which our own syncs do not feel"
        (failed if fails else warned if least >= warn[stall.name] else well).append(text)
    for use in facts.uses:
        percent, text = 100 * use.used / max(1, use.limit), f"{use.name} {use.used} of {use.limit}"
        fails = percent >= settings.fail_percent
        (failed if fails else warned if percent >= settings.warn_percent else well).append(text)
    if facts.syncs_s:
        slow_ms = 1000 * percentile(facts.syncs_s, 99)
        text = f"syncs p99 {slow_ms:.0f} ms"
        (warned if slow_ms >= settings.fsync_warn_milliseconds else well).append(text)
    if failed:
        return Finding(CheckState.FAILED, "; ".join([*failed, *warned]))
    if facts.unseen or (facts.absent and not warned and not well):
        return Finding(CheckState.UNKNOWN, "; ".join([*facts.unseen, *warned, *facts.absent]))
    return Finding(CheckState.WARNED if warned else CheckState.PASSED, "; ".join([*(warned or well), *facts.absent]))


def percentile(values: Sequence[float], percent: int) -> float:
    """The nearest rank: of few values the largest."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _stall(proc: str, name: str) -> Stall:
    path, line = f"{proc}/pressure/{name}", "some" if name == "cpu" else "full"  # of the whole node nobody is "full"
    needs = "a kernel with pressure stall information (CONFIG_PSI, psi=1)"
    for words in map(str.split, text_of(path, needs).splitlines()):
        if words[:1] == [line]:
            found = dict(word.split("=", 1) for word in words[1:] if "=" in word)
            try:
                return Stall(name, float(found["avg60"]), float(found["avg10"]), int(found["total"]) / 1e6)
            except (KeyError, ValueError):
                break
    raise CannotLookError(f"{path} has no line of {line!r}: needs another kernel")


def _threads(proc: str) -> Use:
    path = f"{proc}/loadavg"
    try:
        threads = int(text_of(path, "the proc file system").split()[3].partition("/")[2])
    except (IndexError, ValueError) as e:
        raise CannotLookError(f"{path} has no number of threads: needs another kernel") from e
    limits = [number_of(f"{proc}/sys/kernel/{name}", "the proc file system") for name in ("pid_max", "threads-max")]
    return Use("threads", threads, min(limits))


def _pod_threads(cgroup: str, root: str | None) -> list[Use]:
    """None where the pods' group has no limit."""
    group, needs = group_of_pods(cgroup, root), "the pids controller, on for the group of the pods"
    if text_of(f"{group}/pids.max", needs).strip() == "max":
        return []
    used, limit = (number_of(f"{group}/pids.{name}", needs) for name in ("current", "max"))
    return [Use("threads of pods", used, limit)]


def _files(proc: str) -> Use:
    path = f"{proc}/sys/fs/file-nr"
    try:
        allocated, free, limit = map(int, text_of(path, "the proc file system").split())
    except ValueError as e:
        raise CannotLookError(f"{path} does not hold three numbers: needs another kernel") from e
    return Use("open files", allocated - free, limit)
