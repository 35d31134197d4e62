"""The network ports that sysfs shows: interfaces, and ports of InfiniBand and RoCE. Read by a child process, see
`subprocess_reader`, as a driver may hang: so it needs the standard library alone, and what it gives is lists and texts.

A port has the name of its interface (`eth0`), or of its device and number (`mlx5_0/1`).
"""

import fnmatch
import os

_NET = ("operstate", "flags", "carrier_down_count")
_NET_ERRORS = ("rx_errors", "tx_errors")
_IB = ("state", "phys_state", "counters/link_downed")
_IB_ERRORS = ("symbol_error", "port_rcv_errors", "local_link_integrity_errors")
_LIMIT_BYTES = 4096


def ports_in(sys: str, wanted: list[str], with_speed: bool) -> list[list[object]]:
    """Those of devices, without virtual functions, and those whose names one of `wanted` matches. Of each: name, state,
    flags or physical state, how often its link went down, speed, and errors, as texts; None for what is not shown.

    The speed is read of wanted ports alone: some devices log an error when it is read. Raises OSError where the list of
    interfaces cannot be read.
    """
    found: list[list[object]] = []
    for name in sorted(os.listdir(f"{sys}/class/net")):  # noqa: PTH208 - no pathlib
        folder, is_wanted = f"{sys}/class/net/{name}", _is_wanted(name, wanted)
        if is_wanted or _is_device(folder):
            speed = _text(f"{folder}/speed") if is_wanted and with_speed else None
            errors = [_text(f"{folder}/statistics/{file}") for file in _NET_ERRORS]
            found.append([name, *(_text(f"{folder}/{file}") for file in _NET), speed, errors])
    for device in _names(f"{sys}/class/infiniband"):
        ports = f"{sys}/class/infiniband/{device}/ports"
        for name in [f"{device}/{port}" for port in _names(ports)]:
            folder, is_wanted = f"{ports}/{name.rpartition('/')[2]}", _is_wanted(name, wanted)
            if is_wanted or _is_device(f"{sys}/class/infiniband/{device}"):
                speed = _text(f"{folder}/rate") if is_wanted and with_speed else None
                errors = [_text(f"{folder}/counters/{file}") for file in _IB_ERRORS]
                found.append([name, *(_text(f"{folder}/{file}") for file in _IB), speed, errors])
    return found


def _is_device(folder: str) -> bool:
    return os.path.lexists(f"{folder}/device") and not os.path.lexists(f"{folder}/device/physfn")


def _is_wanted(name: str, wanted: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - as above
    except OSError:  # no such devices, or one that has just gone
        return []


def _text(path: str) -> str | None:
    """A file that cannot be read is not shown: of a link that is down the kernel gives no speed (EINVAL)."""
    try:
        with open(path) as file:  # noqa: PTH123 - as above
            return file.read(_LIMIT_BYTES).strip()
    except (OSError, UnicodeDecodeError):
        return None
