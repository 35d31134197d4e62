"""Kernel limits of this machine that three hosts more would run into, raised while they are up.

A kubelet or a systemd that gets no inotify instance fails with "too many open files", long after the start.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_SYSCTL = Path("/proc/sys")
# Three hosts take about 50 instances; many distributions allow 128 per user.
_NEEDED = {"fs/inotify/max_user_instances": 1024, "fs/inotify/max_user_watches": 262144}


def too_low() -> dict[str, int]:
    """Path below /proc/sys -> its present value, of each limit that must be raised."""
    present = {name: int((_SYSCTL / name).read_text()) for name in _NEEDED}
    return {name: value for name, value in present.items() if value < _NEEDED[name]}


def raise_limits(names: Mapping[str, int]) -> None:
    for name in names:
        (_SYSCTL / name).write_text(str(_NEEDED[name]))


def restore(before: Mapping[str, int]) -> None:
    """Puts back what `too_low` told, unless somebody has set another value in the meantime."""
    for name, value in before.items():
        with suppress(OSError):
            if int((_SYSCTL / name).read_text()) == _NEEDED.get(name):
                (_SYSCTL / name).write_text(str(value))
