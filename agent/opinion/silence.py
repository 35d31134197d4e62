"""Pure: does the kubelet of this node still report?

Two witnesses. Its health port on loopback (`/healthz`, which covers its sync loop) costs nothing and answers at once;
its Lease is what the rest of the cluster goes by. Where the health port is known, both must be silent: the port for
PORT_LIMIT_S, and the Lease, which is only read while the port is silent, unmoved for LEASE_UNMOVED_S. Without the port
the Lease alone is read all the time, and must stand for the limit of the settings.

`renewTime` is compared for change only, so no clock but ours matters. A Lease that could not be read is no witness:
with the API server away a kubelet that is stopped cannot be told from one that is cut off, and nothing could be
written.
"""

import math
from dataclasses import dataclass, replace

PORT_LIMIT_S = 6.0  # three looks; a kubelet that is restarted is back within 3 s
LEASE_UNMOVED_S = 12.5  # a kubelet renews each 10 s, and up to 4 % later
LEASE_FRESH_S = 15.0  # a reading this old says nothing of now


@dataclass(frozen=True, slots=True)
class Seen:
    """Monotonic seconds. port_silent_since: None while it answers. renew_time: as the Lease had it when it was read
    last; moved_at: when a reading first showed it; read_at: of the last reading, -inf without one."""

    port_silent_since: float | None = None
    port_said: str = ""
    renew_time: str = ""
    moved_at: float = math.inf
    read_at: float = -math.inf


def port_answered(seen: Seen) -> Seen:
    """It lives. What its Lease said is forgotten: readings begin anew when they are needed again."""
    return replace(seen, port_silent_since=None, port_said="")


def port_silent(seen: Seen, said: str, monotonic: float) -> Seen:
    """No answer, or one that says it is not well. said: which, for people."""
    since = seen.port_silent_since
    if since is None:
        return Seen(monotonic, said)
    return replace(seen, port_said=said)


def lease_read(seen: Seen, renew_time: str, monotonic: float) -> Seen:
    moved = seen.moved_at == math.inf or renew_time != seen.renew_time
    return replace(seen, renew_time=renew_time, moved_at=monotonic if moved else seen.moved_at, read_at=monotonic)


def lease_unread(seen: Seen) -> Seen:
    """It could not be read: then its kubelet could perhaps not renew it either, and needs time once it can."""
    return replace(seen, renew_time="", moved_at=math.inf, read_at=-math.inf)


def is_silent(seen: Seen, monotonic: float, *, has_port: bool, lease_limit_s: float) -> bool:
    if monotonic - seen.read_at > LEASE_FRESH_S:
        return False
    if not has_port:
        return seen.read_at - seen.moved_at >= lease_limit_s
    since = seen.port_silent_since
    if since is None or monotonic - since < PORT_LIMIT_S:
        return False
    return seen.read_at - seen.moved_at >= LEASE_UNMOVED_S


def reads_lease(seen: Seen, *, has_port: bool) -> bool:
    """Whether its Lease is wanted now."""
    return not has_port or seen.port_silent_since is not None
