"""The built-in check `kernelLog`: has the kernel said that something of this node is broken, and is that still so?

What the kernel writes is sorted into classes. Each has a scope (the node, or a device: then it counts where a file
system on it holds one of `gatePaths`, warns where it holds others, and is nothing where none is mounted; one disk of a
RAID that has others, and one path of several to a disk, only warn), how many lines within which window make it true,
and a way back:

| class | lines | true for | default |
|---|---|---|---|
| `softLockup` | 2 in 120 s, of two stalls | 300 s after the last | gate |
| `hardLockup` | 1 | 600 s | gate |
| `rcuStall` | 2 in 300 s, of two stalls | 300 s after the last | gate |
| `unregisterNetdevice` | 4 in 60 s, of one interface | 60 s after the last: it comes every 10 s while it lasts | gate |
| `conntrackFull` | 3 in 60 s, 2 s apart: new connections are dropped | 60 s after the last | gate |
| `neighbourOverflow` | 3 in 60 s, 2 s apart, of IPv4 or IPv6 | 60 s after the last | gate |
| `ioError` | 5 in 60 s, of one device, but for discards | 300 s after the last | gate |
| `filesystemShutdown` | 1, of one device | until it is mounted again, or no longer | gate |
| `uncorrectedError` | 1: memory, machine check | 3600 s | gate |
| `correctedError` | 10 in 3600 s | 3600 s after the last | warn |
| `hungTask` | 1 | 600 s after the last | warn |
| `oops` | 1 | until the node is booted again | warn |
| `gpuXid` | 1 of the GPU's own fault, of one GPU | until the driver says it is well, or is loaded again | warn |
| `gpuLost` | 1: a GPU is off the bus when the driver is loaded | until it is loaded again, 10 s later or more | warn |
| `sxid` | 1 that is fatal, of one NVSwitch | until the driver is loaded again | warn |
| `pcieFatal` | 1, of one device: AER, uncorrected and fatal | 3600 s | warn |
| `netdevWatchdog` | 1, of one interface: a transmit queue timed out | 300 s after the last | warn |
| `workqueueLockup` | 2 in 120 s, of two stalls | 300 s after the last | warn |
| `nfsNotResponding` | 1, of one server | until the server answers, at most 600 s after the last | warn |
| `zfsSuspended` | 1, of one pool | until the node is booted again | warn |
| `oomKill` | 1, of the node or of a control group (a pod's own limit) | 600 s after the last | note |

A line counts from the moment at which the kernel wrote it. So a restart of the agent brings nothing back that was over,
and what is still true it finds again in the kernel's buffer; in `positionFile`, which lies beside the agent's
`stateFile` unless it is named, also what has left the buffer. The kernel wakes the check: with `failureThreshold` 1 a
line that gates closes the node at once. Lines that programs write to the kernel's log do not count, unless `programs`
says so; nor does what a pod gets into the kernel's own lines by the name of a process or of its program, nor what
firmware remembers of errors of an earlier boot (BERT).

Of NVIDIA's Xid those count after which, by its catalogue, the GPU is to be reset or the node to be booted, and the
driver's own word on that (154): not what programs bring about (13, 31, 43, 45, 94, 109 and others). A GPU that was
reset with the driver left in place is well again when the driver says so, which not every one does. What has been
mended so that the kernel does not tell of it, root can call over, by class and thing, or by class alone:

```sh
echo 'readygate: over gpuXid 0000:3b:00' > /dev/kmsg
```

`pcieFatal` and `sxid` count neither corrected errors nor those that are not fatal: some machines log them all day.
`zpool clear` resumes a ZFS pool without a line of the kernel's: call `zfsSuspended` over, too. `nfsNotResponding` only
warns, as the server is down for all nodes, or the volume is one pod's.

False alarms of other detectors that do not occur here, each with a test: returnn#1486 and nbfc#181 (corrected PCIe
errors), gpud#1164 (a register that may not be read), open-gpu-kernel-modules#1098 (an empty line), and
eks-node-monitoring-agent#215 (one line that nothing ended).

A class of `note` (OOM kills) is said and changes nothing: a container that hits its own limit is no fault of the node.

Classes of your own are `patterns`:

```yaml
checks:
- name: kernel-log
  kernelLog:
    patterns:
    - class: nicHealth                    # a name of its own
      line: 'mlx5_core (?P<device>\\S+): .*health compromised'
      exclude: ['mlx5_core 0000:d2:']     # lines that do not count
      severity: gate                      # or warn (the default), or note
      count: 2                            # so many lines of one device
      windowSeconds: 60                   # within so long
      lastsSeconds: 600                   # its end by time, after the last line; null: none
      endLine: 'mlx5_core (?P<device>\\S+): recovered'   # its end by a line; without the group: of all devices
    exclude: ['XFS \\(sdx1\\): ']          # of no class at all, also of the ready-made ones
```

An expression matches from the beginning of the line on; put `.*` before what may be anywhere. The group `device` names
what is counted on its own. With `scope: device` it is a block device, which counts as those of the ready-made classes
do, by what is mounted from it. Root can call a class of your own over, too. A pattern that is changed, or taken away,
takes what it has found with it, and counts lines from then on.

The syntax is that of Go and of Python, but for what cannot be matched in a bounded time: look-around, references
to groups, edges of words. The time of a line is at most proportional to its length, whatever the expression. All
expressions of a check together have at most 500 characters and classes, with repetitions written out.

`conntrackFull` and `neighbourOverflow` are what `connectionTables` counts; the log shows it where a kernel has no
counters. Each network namespace has a table of connections, and older kernels write the same line for a pod's own. So
`conntrackFull` only warns while the host's table has room (below 95 %), if the agent is in the host's network namespace
and can see that.

A virtual machine that was paused, as for a snapshot or a migration, is well again when it goes on, and each of its
processors tells of that once. So what other processors tell within 10 s after the first is the same stall. One that is
stuck tells it again, after 20 s and more.

A device is found below a file system through partitions, LVM, dm-crypt, md, multipath and btrfs, by what sysfs shows.
Errors on a path of an NVMe namespace (`nvme0c1n1`) count for the namespace (`nvme0n1`). A volume that LVM mirrors, and
a btrfs that has all its data and metadata on two devices, are like a RAID.

A disk that has left the bus is not in sysfs any more, but its file system is still mounted and every write fails. The
check remembers the tree of devices, also in `positionFile`. For a disk that left before the agent started it uses the
links that remain below volumes, and the source of the mount (`/dev/nvme0n1p2` is on `nvme0n1`). If both are missing, it
goes by elimination: the kernel reports errors of a disk that is gone, and no disk that is there carries the gate path.
One line is enough then, and such a fault has no end by time: it is over when the file system is unmounted or the node
is booted again. The members of a ZFS pool and of a bcachefs with several devices are not found.

`gatePaths` are not followed: of a link name what it leads to, too.

`hungTask` only warns, as a task that waits for two minutes may be one of a pod on a volume of its own. No line waits
for another source to say the same: that everybody stands still, or that nothing can be written, is found by the checks
`pressure` and `filesystem`, which have thresholds and severities of their own.
"""

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from agent.checks import own_classes
from agent.checks.block_devices import Devices, Places, mounts_of, places_of, with_present
from agent.checks.kernel_files import NEARLY_FULL_PERCENT, CannotLookError, text_of, tracked_connections
from agent.checks.kernel_lines import CLASSES, GATE, NOTE, WARN, ClassName, Trouble, called_over
from agent.checks.kernel_troubles import Classes, Key, Known, after, holds, stays, with_classes
from agent.checks.own_classes import PATTERNS_LIMIT, PatternSection, Severity
from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.checks.sysfs import block_names, devices_in
from agent.kernel import kmsg
from agent.kernel.kmsg import KERNEL, RECORD_BYTES, Record, records_in
from agent.wire.setting_types import NonEmpty
from component.settings import Section
from kube.objects import UNREADABLE

DOC = "the kernel's log tells of no lockup, I/O errors, file system that was shut down or the like that still holds"
RIGHTS = Rights(devices=("/dev/kmsg",), capabilities=("CAP_SYSLOG",), host_pid=True, root=True)
READ_PART = 0.5  # of the timeout: a flood of lines is read on in the next run
SAVE_AGAIN_S = 10.0  # where only the position has moved
DEVICES_AGAIN_S = 60.0  # where none has come or gone
SEVERITIES: tuple[Severity, ...] = ("gate", "warn", "note")
MOUNTS_BYTES = 2**24  # of each container there is a line that names all its layers


class Settings(Section, frozen=True):
    """`gate`, `warn`: the classes that fail and that warn. `note`: those that are said and change nothing. A class in
    none of the three is not looked at."""

    gate: tuple[ClassName, ...] = GATE
    warn: tuple[ClassName, ...] = WARN
    note: tuple[ClassName, ...] = NOTE
    patterns: Annotated[
        tuple[PatternSection, ...], Meta(max_length=PATTERNS_LIMIT, description="a list of at most 32 patterns")
    ] = ()
    exclude: Annotated[
        tuple[NonEmpty, ...], Meta(max_length=PATTERNS_LIMIT, description="a list of at most 32 expressions")
    ] = ()
    gate_paths: tuple[NonEmpty, ...] = (
        "/",
        "/var/lib/kubelet",
        "/var/lib/containerd",
        "/var/lib/containers",
        "/var/lib/rancher/k3s/agent/containerd",
        "/var/lib/rancher/rke2/agent/containerd",
    )
    programs: bool = False
    position_file: str = ""
    path: NonEmpty = kmsg.PATH
    mountinfo: NonEmpty = "/proc/1/mountinfo"
    sys: NonEmpty = "/sys"
    boot_id: NonEmpty = "/proc/sys/kernel/random/boot_id"

    def __post_init__(self) -> None:
        own_classes.check(self.patterns, self.exclude)

    def named(self, severity: Severity) -> Collection[str]:
        """The classes of a severity."""
        ready_made: Mapping[Severity, Sequence[str]] = {"gate": self.gate, "warn": self.warn, "note": self.note}
        return {*ready_made[severity], *(one.name for one in self.patterns if one.severity == severity)}


class Check:
    def __init__(self, settings: Settings, timeout_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._limit_s = READ_PART * timeout_s
        self._monotonic = monotonic
        self._classes = {**CLASSES, **own_classes.classes_of(settings.patterns)}
        self._exclude = own_classes.compiled_all(settings.exclude, "exclude")
        self._own = msgspec.json.encode(settings.patterns).decode()
        self._known: Known | None = None
        self._saved: tuple[Known, float] | None = None
        self._log: int | None = None
        self._keeps_up = False  # everything was read once: what comes since then is new
        self._devices_at_s: float | None = None
        self._device_names: list[str] = []

    def __call__(self) -> Finding:
        """PASSED, WARNED, FAILED with the classes that hold; UNKNOWN where log or mounts are not to be read."""
        settings, keeps_up = self._settings, self._keeps_up
        try:
            known = self._known or self._kept(text_of(settings.boot_id, "/proc").strip())
            coming = self._dated(self._read(settings.programs), new=keeps_up)
            known = after(known, coming, self._classes, self._exclude)
        except CannotLookError as e:
            return Finding(CheckState.UNKNOWN, str(e))
        now = self._monotonic()
        known = self._known = self._with_devices(known, now)
        self._save(known)
        classes = self._classes
        holding = {
            key: it for key, it in known.troubles if holds(key, it, now, classes) or stays(key, known.devices, classes)
        }
        try:
            places = self._places(holding, known.devices)
        except CannotLookError as e:
            return _without_places(holding, e, now, settings, classes)
        over = [
            key for key, it in holding.items() if not holds(key, it, now, classes) and not places.mounts.get(key[1])
        ]
        if over:
            left = tuple(it for it in known.troubles if it[0] not in over)
            self._known = msgspec.structs.replace(known, troubles=left)
        return judge(holding, places, now, settings, classes, has_room=_has_room(holding, settings, classes))

    def descriptor(self) -> int | None:
        """Readable as soon as the kernel has written something."""
        return self._log

    def close(self) -> None:
        """After the last run."""
        if self._log is not None:
            os.close(self._log)
            self._log = None

    def _read(self, programs: bool) -> Iterable[Record]:
        """Everything that is new. Raises CannotLookError."""
        if self._log is None:
            self._log = _opened(self._settings.path)
        deadline = self._monotonic() + self._limit_s
        while self._monotonic() < deadline:
            try:
                block = os.read(self._log, RECORD_BYTES)
            except BlockingIOError:
                self._keeps_up = True
                return
            except BrokenPipeError:  # overwritten before it was read; the next read gives the oldest that there is
                continue
            except OSError as e:
                os.close(self._log)
                self._log = None
                raise CannotLookError(f"{self._settings.path} cannot be read ({e.strerror}): needs CAP_SYSLOG") from e
            if not block:
                return
            yield from (it for it in records_in(block) if programs or it.facility == KERNEL or called_over(it.text))

    def _dated(self, records: Iterable[Record], *, new: bool) -> Iterator[Record]:
        """What comes while we look is of now: over months the clock of the log goes another way than ours. What was
        there before is not, however many runs it takes to read all of it."""
        for record in records:
            now = self._monotonic()
            yield replace(record, at_s=now if new else min(record.at_s, now))

    def _with_devices(self, known: Known, monotonic: float) -> Known:
        """Reads sysfs again where a device has come, gone or is in trouble, and each minute: a volume may be moved."""
        names = block_names(self._settings.sys)
        is_late = self._devices_at_s is None or monotonic - self._devices_at_s >= DEVICES_AGAIN_S
        in_trouble = any(self._classes[name].device for (name, _), _ in known.troubles)
        if not (is_late or in_trouble or names != self._device_names):
            return known
        self._device_names, self._devices_at_s = names, monotonic
        return msgspec.structs.replace(known, devices=with_present(known.devices, devices_in(self._settings.sys)))

    def _places(self, holding: Iterable[Key], devices: Devices) -> Places:
        """Raises CannotLookError."""
        named = {of for name, of in holding if self._classes[name].device}
        if not named:
            return Places()
        text = text_of(self._settings.mountinfo, "the host's processes (hostPID), and root", MOUNTS_BYTES)
        places = places_of(named, devices, mounts_of(text), self._settings.gate_paths)
        if places.unclear and not all(places.mounts.values()):
            nothing = f"{self._settings.sys}/class/block shows no device below {places.unclear[0]}"
            raise CannotLookError(f"{nothing}: needs the host's sysfs")
        return places

    def _kept(self, boot_id: str) -> Known:
        return with_classes(_kept(self._settings.position_file, boot_id), self._classes, self._own)

    def _save(self, known: Known) -> None:
        path, now = self._settings.position_file, self._monotonic()
        if not path or (self._saved and self._saved[0] == known):
            return
        if self._saved and self._saved[0].troubles == known.troubles and now - self._saved[1] < SAVE_AGAIN_S:
            return
        with contextlib.suppress(OSError):  # until it works a restart reads the kernel's buffer once more, which is all
            Path(f"{path}.new").write_bytes(msgspec.json.encode(known))
            Path(f"{path}.new").replace(path)
            self._saved = known, now


def _has_room(holding: Iterable[Key], settings: Settings, classes: Classes) -> bool:
    """Whether the host's table of connections has room; False where it cannot be seen."""
    if not any(classes[name].per_netns for name, _ in holding):
        return False
    host = Path(settings.mountinfo).parent  # the folder of its first process in /proc
    try:
        # One file where the network namespace is one; reading a link in `ns` takes CAP_SYS_PTRACE.
        if not (host / "net/dev").samefile(host.parent / "self/net/dev"):
            return False
        entries, limit = tracked_connections(str(host.parent), "")
    except (OSError, CannotLookError):
        return False
    return not limit or 100 * entries < NEARLY_FULL_PERCENT * limit


def _without_places(
    holding: Mapping[Key, Trouble], error: CannotLookError, monotonic: float, settings: Settings, classes: Classes
) -> Finding:
    """Where devices are in trouble and the mounts cannot be read."""
    blind = f"{', '.join(dict.fromkeys(name for name, _ in holding if classes[name].device))}, but {error}"
    others = {key: trouble for key, trouble in holding.items() if not classes[key[0]].device}
    has_room = _has_room(others, settings, classes)
    found = judge(others, Places(), monotonic, settings, classes, has_room=has_room)
    if found.state is CheckState.FAILED:  # wherever those devices are mounted
        return Finding(CheckState.FAILED, f"{found.output}; {blind}")
    return Finding(CheckState.UNKNOWN, blind)


def judge(
    holding: Mapping[Key, Trouble],
    places: Places,
    monotonic: float,
    settings: Settings,
    classes: Classes = CLASSES,
    *,
    has_room: bool = False,
) -> Finding:
    """`holding`: the troubles that are true at `monotonic`, seconds since the boot. `has_room`: the host's table of
    connections."""
    gate, warn, note = (settings.named(severity) for severity in SEVERITIES)
    failed, warned, noted = list[str](), list[str](), list[str]()
    for (name, of), trouble in holding.items():
        ago_s = max(0.0, monotonic - trouble.times_s[-1])
        gone = " (device gone)" if classes[name].device and of in places.gone else ""
        text = f"{name}{of and ' '}{of}{gone}: {trouble.lines} lines, the last {ago_s:.0f} s ago"
        gated = name in gate
        if classes[name].device:
            if not (mounts := places.mounts.get(of)):
                continue
            gated = gated and bool(places.gated.get(of))
            text += f", below {(places.gated.get(of) or mounts)[0]}"
        if classes[name].per_netns and has_room:
            gated = False
            text += ", but the host's table has room"
        if gated:
            failed.append(text)
        elif name in warn or name in gate:
            warned.append(text)
        elif name in note:
            noted.append(text)
    state = CheckState.FAILED if failed else CheckState.WARNED if warned else CheckState.PASSED
    troubles = [*failed, *warned] or ["nothing that still holds"]
    return Finding(state, "; ".join([*troubles, *noted]))


def _opened(path: str) -> int:
    try:
        return kmsg.opened(path)
    except OSError as e:
        raise CannotLookError(f"{path} cannot be opened ({e.strerror}): needs {kmsg.needs(e)}") from e


def _kept(path: str, boot_id: str) -> Known:
    """What an earlier run of the agent knew, if it was on this boot."""
    if path:
        with contextlib.suppress(OSError, *UNREADABLE):
            known = msgspec.json.decode(Path(path).read_bytes(), type=Known)
            if known.boot_id == boot_id:
                return known
    return Known(boot_id)
