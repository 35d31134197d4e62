"""Which trouble a line of the kernel's log tells of. Pure.

Pods have a part in what the kernel writes: a line about a process has its name, of up to 15 bytes and often at its
start, and the name of its program's file, which may be long and stands further on. So a class is looked for at the
start of a line alone, what is said there is longer than a name, and no line about a process is of any class.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from agent.checks.block_devices import disk_name

FOR_EVER = float("inf")
# Processors that go on after one pause tell of it within a second or two. One that is stuck is told of again after
# 20 s, RCU's stall after a minute.
STALL_S = 10.0
# The kernel writes at most ten of these lines in five seconds: several at once are one burst.
BURST_S = 2.0

ClassName = Literal[
    "softLockup", "hardLockup", "rcuStall", "unregisterNetdevice", "conntrackFull", "neighbourOverflow", "ioError",
    "filesystemShutdown", "uncorrectedError", "correctedError", "hungTask", "oops", "gpuXid", "gpuLost", "sxid",
    "pcieFatal", "netdevWatchdog", "workqueueLockup", "nfsNotResponding", "zfsSuspended", "oomKill",
]  # fmt: skip


class Named(Protocol):
    """A match. Its groups: the first that is not empty names what a line is about."""

    def groups(self) -> Sequence[Any]: ...


class Line(Protocol):
    """Lines of one kind, as an expression of `re` or of `linear_patterns`, from their beginning."""

    def match(self, string: str, /) -> Named | None: ...


@dataclass(frozen=True, slots=True)
class LogClass:
    """`line`: with what it begins; a group in it names what it is about. `count` of them within `window_s` make it
    true for `lasts_s` after the last. `healed`: a line that ends it, for the same thing where it names one. `device`:
    the thing is a block device. `stall_s`: for so long after one that counts others may tell of the same. `per_netns`:
    it may be true of a pod's network namespace alone. `heal_after_s`: a line that comes sooner after the last ends
    nothing."""

    line: Line
    count: int = 1
    window_s: float = FOR_EVER
    lasts_s: float = FOR_EVER
    healed: Line | None = None
    device: bool = False
    stall_s: float = 0.0
    per_netns: bool = False
    heal_after_s: float = 0.0


class Trouble(msgspec.Struct, frozen=True):
    """Lines of one class about one thing: when the last ones were written that count, and the last at which the class
    was true. `processors`: which have told of the last stall."""

    times_s: tuple[float, ...] = ()
    true_at_s: float | None = None
    lines: int = 0
    processors: tuple[str, ...] = ()


# A name as the log shows it: what is no printable ASCII takes four characters.
_NAME = r"(?:\\x[\da-f]{2}|[^\\]){0,15}"
# `NAME[5]: segfault`, `NAME[5] bad frame`, `NAME (5): `, `NAME invoked oom-killer`: the kernel puts no class so.
_OF_A_PROCESS = re.compile(rf"{_NAME}(?:\[\d+\][: ]| ?\(\d+\)[: ]| invoked oom-killer: |: page allocation )")
_DEV = r"([\w!./-]+)"
# What a disk may decline: that it does not forget or clear blocks loses nothing, and `fstrim` tries all of them weekly.
_NO_HINT = r"(?! op 0x\w+:\((?:DISCARD|SECURE_ERASE|WRITE_ZEROES)\))"
_WATCHDOG = r"(?:NMI )?(?:watchdog: )?"
# What firmware remembers of an earlier boot (BERT) the kernel prints at each start, some machines' for ever: in the
# same words, but without a number, and with its details further in.
_ERROR = r"\[Hardware Error\]: "
_NUMBERED = rf"\{{\d+\}}{_ERROR}"
_HARDWARE = rf"(?:(?:mce: )?{_ERROR}(?! )|{_NUMBERED})"
_EDAC = r"EDAC (?:\w+ )?MC\w+: \d+ {} (?:.+ )?on \S"
_XID = r"NVRM: Xid \((?:PCI:)?([\da-fA-F:.]+)[^)]*\): "
_PCI = r"([\da-f]{4,8}:[\da-f]{2}:[\da-f]{2}\.\d)"
_WANTED = r"154, GPU recovery action changed from 0x\w+ \([\w ]+\) to"  # by the driver, whatever the cause was
CLASSES: Mapping[str, LogClass] = {
    "softLockup": LogClass(
        re.compile(rf"{_WATCHDOG}BUG: soft lockup - CPU#\d+ stuck for"), 2, 120, 300, stall_s=STALL_S
    ),
    "hardLockup": LogClass(
        re.compile(rf"{_WATCHDOG}(?:CPU\d+: )?Watchdog detected hard LOCKUP on cpu"), lasts_s=600
    ),
    "rcuStall": LogClass(
        re.compile(r"(?:rcu: )?INFO: rcu\w* (?:self-)?detected (?:expedited )?stall"), 2, 300, 300, stall_s=STALL_S
    ),
    "unregisterNetdevice": LogClass(
        re.compile(r"unregister_netdevice: waiting for (\S+) to become free"), 4, 60, 60
    ),
    # A kernel of 2025 and later says of a pod's own table "table full in netns 4026532178": none of the host's.
    "conntrackFull": LogClass(
        re.compile(r"(?:(?:nf|ip)_conntrack: ){1,2}table full, dropping packet"),
        3, 60, 60, stall_s=BURST_S, per_netns=True,
    ),
    "neighbourOverflow": LogClass(
        re.compile(
            r"(?:(?:neighbour: )?(arp|ndisc)_cache: neighbor table overflow!"
            r"|(?:[Ii][Pp]v[46]: )?Neighbour table overflow\b)"
        ),
        3, 60, 60, stall_s=BURST_S,
    ),
    "ioError": LogClass(
        re.compile(
            r"(?:(?:(?:blk_update_request|print_req_error|end_request): )?"
            rf"(?!operation not supported )(?:[\w/]+ ){{1,3}}error, dev {_DEV}, sector \d+\b{_NO_HINT}"
            rf"|Buffer I/O error on dev(?:ice)? {_DEV}, logical block"
            # Of an NVMe namespace whose last path is gone, the kernel says no more than this.
            rf"|block {_DEV}: no available path - failing I/O)"
        ),
        5, 60, 300, device=True,
    ),
    "filesystemShutdown": LogClass(
        re.compile(
            rf"(?:XFS \({_DEV}\): .*(?:[Ss]hutting down filesystem|[Ff]ilesystem has been shut down|force_shutdown)"
            rf"|EXT4-fs \({_DEV}\): Remounting filesystem read-only"
            # Before its own words there may be the name of the process, or a path that a pod has chosen.
            rf"|EXT4-fs error \(device {_DEV}\): \w+:\d+: (?:comm [^:]{{1,60}}: )?Remounting filesystem read-only\Z"
            rf"|BTRFS:? \w+ \(device {_DEV}(?::? state \w+)?\):? forced readonly)"
        ),
        healed=re.compile(
            rf"(?:XFS \({_DEV}\): Mounting V"
            rf"|EXT4-fs \({_DEV}\): (?:mounted filesystem|re-mounted(?!.* ro\b))"
            # Older kernels do not tell a mount as one; the others are said of none but a mount.
            rf"|BTRFS info \(device {_DEV}\): (?:first mount|has skinny extents|using \w+ \(\S+\) checksum))"
        ),
        device=True,
    ),
    "uncorrectedError": LogClass(
        re.compile(
            rf"{_EDAC.format('UE')}|\{{(\d+)\}}{_ERROR}event severity: (?:recoverable|fatal)"
            rf"|{_HARDWARE}.*[Uu]ncorrected|Memory failure: 0x\w+: recovery"
        ),
        lasts_s=3600,
        # How bad comes first, then of what: a device's error is for its driver, as that of a disk that was pulled.
        healed=re.compile(rf"\{{(\d+)\}}{_ERROR} *section_type: PCIe error"),
    ),
    "correctedError": LogClass(
        re.compile(
            rf"{_EDAC.format('CE')}|{_NUMBERED}event severity: corrected|{_HARDWARE}Machine check events logged"
        ),
        10, 3600, 3600,
    ),
    "hungTask": LogClass(
        re.compile(r"INFO: task .{1,60}:\d+ blocked (?:in I/O wait )?for more than \d+ seconds"), lasts_s=600
    ),
    "oops": LogClass(
        re.compile(
            r"(?:kernel BUG at \S+:\d+!"
            # Behind the number there are words of the kernel's configuration alone.
            r"|(?:Oops|Internal error|(?:general )?protection fault|invalid opcode|divide error"
            r"|(?:BUG: )?[Uu]nable to handle)\b[^\[]*\[#\d+\](?: +[A-Z][A-Z_]*(?:\(\w+\))?)*\s*\Z)"
        )
    ),
    "gpuXid": LogClass(
        re.compile(
            rf"{_XID}(?:(?:46|48|62|64|74|79|95|110|119|120|136|140|143|155|156|158)\b|{_WANTED} 0x(?!0+ )\w+ \()"
            r"|NVRM: GPU (?:PCI:)?([\da-fA-F:]+)\.\d: GPU has fallen off the bus"
        ),
        healed=re.compile(rf"NVRM: loading NVIDIA|{_XID}{_WANTED} 0x0+ \("),
    ),
    # Without an Xid, where the driver does not find a GPU when it is loaded (NVSentinel#155, gpud#1209). The lines are
    # one record, with the line feeds escaped, or one each. What the driver says last is that it is being loaded.
    "gpuLost": LogClass(
        re.compile(
            r"NVRM: The NVIDIA GPU ([\da-fA-F:]+)\.\d\b.{0,200}fallen off the bus"
            r"|NVRM: fallen off the bus and is not responding"
        ),
        healed=re.compile(r"NVRM: loading NVIDIA"),
        heal_after_s=10,
    ),
    "sxid": LogClass(
        re.compile(r"nvidia-nvswitch\d+: SXid \(PCI:([\da-fA-F:.]+)\): \d+, Fatal\b"),
        healed=re.compile(r"NVRM: loading NVIDIA"),
    ),
    "pcieFatal": LogClass(
        re.compile(
            rf"[\w-]{{1,32}} {_PCI}: AER: (?:Multiple )?Uncorrect(?:ed|able) \(Fatal\) error (?:message )?received"
            rf"(?:(?: from|:) {_PCI})?"
            rf"|[\w-]{{1,32}} {_PCI}: (?:AER: )?PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Fatal\)"
        ),
        lasts_s=3600,
    ),
    "netdevWatchdog": LogClass(
        re.compile(
            r"(?:NETDEV WATCHDOG: (\S{1,15}) \(\S*\): |\S+ \S+ (\S{1,15}): NETDEV WATCHDOG: (?:CPU: \d+: )?)"
            r"transmit queue \d+ timed out"
        ),
        lasts_s=300,
    ),
    "workqueueLockup": LogClass(
        re.compile(r"BUG: workqueue lockup - pool .{0,200}stuck for \d+s!"), 2, 120, 300, stall_s=STALL_S
    ),
    "nfsNotResponding": LogClass(
        re.compile(r"nfs: server (\S+) not responding, (?:still trying|timed out)"),
        lasts_s=600,
        healed=re.compile(r"nfs: server (\S+) OK\s*\Z"),
    ),
    "zfsSuspended": LogClass(
        re.compile(
            r"(?:SPLError: \S+ )?WARNING: Pool '([\w.: -]{1,255})' has encountered an uncorrectable I/O failure "
            "and has been suspended"
        )
    ),
    # Older kernels: Kill process (node-problem-detector#480). Of a control group that is a pod's own limit.
    "oomKill": LogClass(
        re.compile(r"(?:(Memory cgroup) o|O)ut of memory(?: \(\w+\))?: Kill(?:ed)? process \d+ "), lasts_s=600
    ),
}  # fmt: skip
GATE: tuple[ClassName, ...] = (
    "softLockup", "hardLockup", "rcuStall", "unregisterNetdevice", "conntrackFull", "neighbourOverflow", "ioError",
    "filesystemShutdown", "uncorrectedError",
)  # fmt: skip
WARN: tuple[ClassName, ...] = (
    "correctedError", "hungTask", "oops", "gpuXid", "gpuLost", "sxid", "pcieFatal", "netdevWatchdog",
    "workqueueLockup", "nfsNotResponding", "zfsSuspended",
)  # fmt: skip
NOTE: tuple[ClassName, ...] = ("oomKill",)
_PROCESSOR = re.compile(r"CPU#(\d+)")
_OVER = re.compile(r"readygate: over (\w+)(?: (\S+))?\s*\Z")


def is_of_a_process(text: str) -> bool:
    """A line that begins with a process's name: whatever it says, a pod may have said."""
    return _OF_A_PROCESS.match(text) is not None


def about(kind: LogClass, text: str) -> str | None:
    """What a line of this class is about, perhaps nothing by name; None for any other line."""
    return _of(kind, kind.line.match(text))


def healed_by(kind: LogClass, text: str) -> str | None:
    """The same of a line that ends it."""
    return _of(kind, kind.healed.match(text)) if kind.healed is not None else None


def more(trouble: Trouble, kind: LogClass, text: str, at_s: float) -> Trouble:
    """With one more line. Of one stall a line counts, and then only what a processor tells that has told of it."""
    named = _PROCESSOR.search(text)
    of = named[1] if named else ""
    lines, same_stall = trouble.lines + 1, bool(trouble.times_s) and at_s - trouble.times_s[-1] < kind.stall_s
    if same_stall and not (of and of in trouble.processors):
        return Trouble(trouble.times_s, trouble.true_at_s, lines, (*trouble.processors, *([of] if of else [])))
    times = (*trouble.times_s, at_s)[-kind.count :]
    true = len(times) == kind.count and at_s - times[0] <= kind.window_s
    return Trouble(times, at_s if true else trouble.true_at_s, lines, (of,) if of else ())


def called_over(text: str) -> tuple[str, str] | None:
    """What people say that it is over, in a line that they write there: the class and the thing, "" for all things."""
    found = _OVER.match(text)
    return None if found is None else (found[1], disk_name(found[2] or ""))


def _of(kind: LogClass, found: Named | None) -> str | None:
    if found is None:
        return None
    named = next((of for of in found.groups() if of), "")
    return disk_name(named) if kind.device else named
