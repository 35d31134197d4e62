"""What is known of the kernel's log after each of its records: the troubles, and whether they still hold. Pure."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from agent.checks.block_devices import Devices, is_gone
from agent.checks.kernel_lines import (
    CLASSES,
    Line,
    LogClass,
    Trouble,
    about,
    called_over,
    healed_by,
    is_of_a_process,
    more,
)
from agent.kernel.kmsg import KERNEL, Record

TROUBLES = 64  # kept at most: those whose end is near make room, of the newest none
NEWEST = 16
AT_ONCE = 1000  # while records are read
Key = tuple[str, str]  # class and thing
Classes = Mapping[str, LogClass]


class Known(msgspec.Struct, frozen=True):
    """What is known after record `sequence` of a boot; kept in `positionFile`. `own`: the classes of the settings, as
    text."""

    boot_id: str
    sequence: int = -1
    troubles: tuple[tuple[Key, Trouble], ...] = ()
    devices: Devices = Devices()
    own: str = ""


def with_classes(known: Known, classes: Classes, own: str) -> Known:
    """Without troubles of classes that the settings no longer have, or define in another way now."""
    kept = [each for each in known.troubles if each[0][0] in (classes if own == known.own else CLASSES)]
    return msgspec.structs.replace(known, troubles=tuple(kept), own=own)


def holds(key: Key, trouble: Trouble, monotonic: float, classes: Classes = CLASSES) -> bool:
    return trouble.true_at_s is not None and monotonic - trouble.true_at_s < classes[key[0]].lasts_s


def stays(key: Key, devices: Devices, classes: Classes = CLASSES) -> bool:
    """Where the device is gone one line is enough, and what is mounted from it does not become well by time."""
    return classes[key[0]].device and is_gone(key[1], devices)


def after(known: Known, records: Iterable[Record], classes: Classes = CLASSES, exclude: Sequence[Line] = ()) -> Known:
    """With the records that come after those that are known already. `exclude`: lines that are of no class."""
    troubles, sequence = dict(known.troubles), known.sequence
    for record in records:
        if record.sequence <= sequence:
            continue
        sequence = record.sequence
        if record.facility != KERNEL and (over := called_over(record.text)) is not None:
            troubles = {key: it for key, it in troubles.items() if over not in (key, (key[0], ""))}
        if is_of_a_process(record.text) or any(line.match(record.text) for line in exclude):
            continue
        for name, kind in classes.items():
            if (of := about(kind, record.text)) is not None:
                troubles[name, of] = more(troubles.pop((name, of), Trouble()), kind, record.text, record.at_s)
            elif (of := healed_by(kind, record.text)) is not None:
                troubles = {
                    key: it
                    for key, it in troubles.items()
                    if key[0] != name
                    or (of and key[1] != of)
                    or record.at_s - max(it.times_s, default=-kind.heal_after_s) < kind.heal_after_s
                }
        if len(troubles) > AT_ONCE:
            troubles = dict(_bounded(list(troubles.items()), classes))
    bounded = _bounded(list(troubles.items()), classes)
    return msgspec.structs.replace(known, sequence=sequence, troubles=bounded)


def _bounded(troubles: list[tuple[Key, Trouble]], classes: Classes) -> tuple[tuple[Key, Trouble], ...]:
    """The newest, and of the others those that hold for longest; which was never true goes first."""
    if len(troubles) <= TROUBLES:
        return tuple(troubles)
    others, newest = troubles[:-NEWEST], troubles[-NEWEST:]
    longest = {key for key, _ in sorted(others, key=lambda each: _ends_s(each, classes))[NEWEST - TROUBLES :]}
    return (*(each for each in others if each[0] in longest), *newest)


def _ends_s(each: tuple[Key, Trouble], classes: Classes) -> float:
    (name, _), trouble = each
    return float("-inf") if trouble.true_at_s is None else trouble.true_at_s + classes[name].lasts_s
