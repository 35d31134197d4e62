"""The kernel's news of the way out of this machine (netlink): a link that is down, a default route that comes or goes
makes a check look at once.

Each pod that comes or goes moves links and routes of its own, so the kernel is given a filter: of routes only default
ones are told, of links only those that do not run.
"""

import contextlib
import ctypes
import socket
import struct

_NEW_LINK, _NEW_ROUTE, _DELETED_ROUTE = 16, 24, 25
_LINKS, _ROUTES, _ROUTES_OF_IPV6 = 0x1, 0x40, 0x400  # groups
_RUNNING = 0x40
_ATTACH_FILTER = 26
_READ_BYTES = 64 * 2**10
# Of the classic packet filter: loads of 1, 2 and 4 bytes, as a network sends them; jumps; the end.
_BYTE, _TWO, _FOUR, _IS, _HAS, _END = 0x30, 0x28, 0x20, 0x15, 0x45, 0x06
# A message's type is at 4, the length of a route's destination at 17, the flags of a link at 24.
_FILTER = (
    (_TWO, 0, 0, 4),
    (_IS, 4, 0, socket.htons(_NEW_ROUTE)),
    (_IS, 3, 0, socket.htons(_DELETED_ROUTE)),
    (_IS, 0, 5, socket.htons(_NEW_LINK)),
    (_FOUR, 0, 0, 24),
    (_HAS, 3, 2, socket.htonl(_RUNNING)),
    (_BYTE, 0, 0, 17),
    (_IS, 0, 1, 0),
    (_END, 0, 0, 0xFFFF),
    (_END, 0, 0, 0),
)


class RouteWatch:
    """From one thread. Where the kernel gives no such socket the check has its period."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._begun = False

    def descriptor(self) -> int | None:
        """Readable when there is something new."""
        return None if self._socket is None else self._socket.fileno()

    def taken(self) -> None:
        """What was told until now has been heard: what comes from here on is news. Called before a look."""
        if not self._begun:
            self._begun = True
            with contextlib.suppress(OSError):
                self._socket = _followed()
        if self._socket is None:
            return
        with contextlib.suppress(OSError):  # nothing more, or more than there was room for
            while self._socket.recv(_READ_BYTES):
                pass

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _followed() -> socket.socket:
    """Raises OSError."""
    steps = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in _FILTER))
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        made.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("HP", len(_FILTER), ctypes.addressof(steps)))
        made.bind((0, _LINKS | _ROUTES | _ROUTES_OF_IPV6))
    except OSError:
        made.close()
        raise
    return made
