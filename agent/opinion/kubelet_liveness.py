"""Pure: does the kubelet of this node still report?

Two witnesses. Its health port on loopback (`/healthz`, which covers its sync loop) costs nothing and answers at once;
its Lease is what the rest of the cluster goes by. Where the health port is known, both must be silent: the port for
PORT_LIMIT_S, and the Lease unmoved for LEASE_UNMOVED_S since then. Without the port the Lease alone must stand for the
limit of the settings, and so where the port has never answered: the kubelet may have none there. A kubelet that was
found silent is so until its port answers or its Lease moves, whatever else can be seen meanwhile.

Beside a port that answers a Lease that stands for LEASE_SILENT_S is a finding of its own: the kubelet may hang in what
its port does not cover, or another program answers there.

`renewTime` is compared for change only, so no clock but ours matters. A reading that fails is no witness: with the API
server away a kubelet that is stopped cannot be told from one that is cut off. So the time of a Lease counts anew after
one; or goes on, PATCHY_S more of it, where readings are never further apart than GAP_S.
"""

import math
from dataclasses import dataclass, replace

PORT_LIMIT_S = 6.0  # three looks; a kubelet that is restarted is back within 3 s
LEASE_UNMOVED_S = 12.5  # a kubelet renews each 10 s, and up to 4 % later
LEASE_FRESH_S = 15.0  # a reading this old says nothing of now
LEASE_SILENT_S = 40.0  # what a kubelet writes into its Lease: for so long it holds
GAP_S = 25.0
PATCHY_S = 40.0  # in a gap of 25 s three renewals may fail; the next one comes 42 s after the last that did not

PAUSE_SILENT_S = 4.0  # between readings while the port is silent
PAUSE_S = 8.0  # where no port answers, as ever, or the Lease has not moved since the last reading
PAUSE_WELL_S = 10.0  # up to twice that: 5,000 agents read 333 Leases a second


@dataclass(frozen=True, slots=True)
class Seen:
    """Monotonic seconds. port_silent_since: None while it answers; answered: whether it ever has. renew_time: as the
    Lease had it when it was read last; moved_at: when a reading first showed it; steady_since: that, or the first
    reading after one that failed; read_at: of the last reading, -inf without one. moves: whether readings have ever
    shown it to move. silent: of the kubelet; lease_silent: of its Lease alone."""

    port_silent_since: float | None = None
    port_said: str = ""
    answered: bool = False
    renew_time: str = ""
    moved_at: float = math.inf
    steady_since: float = math.inf
    read_at: float = -math.inf
    moves: bool = False
    silent: bool = False
    lease_silent: bool = False


def port_answered(seen: Seen) -> Seen:
    """It lives."""
    return replace(seen, port_silent_since=None, port_said="", answered=True, silent=False)


def port_silent(seen: Seen, said: str, monotonic: float) -> Seen:
    """No answer, or one that says it is not well. said: which, for people."""
    since = seen.port_silent_since
    return replace(seen, port_silent_since=monotonic if since is None else since, port_said=said)


def lease_read(seen: Seen, renew_time: str, monotonic: float) -> Seen:
    first = seen.read_at == -math.inf
    if not first and renew_time != seen.renew_time:
        seen = replace(seen, moves=True, silent=False, lease_silent=False, moved_at=math.inf)
    if monotonic - seen.read_at > GAP_S:
        seen = replace(seen, moved_at=math.inf)
    moved_at = min(seen.moved_at, monotonic)
    steady_since = monotonic if moved_at == monotonic else min(seen.steady_since, monotonic)
    return replace(seen, renew_time=renew_time, moved_at=moved_at, steady_since=steady_since, read_at=monotonic)


def lease_unread(seen: Seen) -> Seen:
    """It could not be read: then its kubelet could perhaps not renew it either, and needs time once it can."""
    return replace(seen, steady_since=math.inf)


def latched(seen: Seen, monotonic: float, *, has_port: bool, lease_limit_s: float) -> Seen:
    """With what is found by now."""
    if monotonic - seen.read_at > LEASE_FRESH_S:
        return seen
    if not has_port or not seen.answered:
        return replace(seen, silent=seen.silent or _stands(seen, -math.inf, lease_limit_s))
    since = seen.port_silent_since
    silent = since is not None and monotonic - since >= PORT_LIMIT_S and _stands(seen, since, LEASE_UNMOVED_S)
    alone = _stands(seen, -math.inf, LEASE_SILENT_S)
    return replace(seen, silent=seen.silent or silent, lease_silent=seen.lease_silent or alone)


def is_known(seen: Seen, *, has_port: bool) -> bool:
    """Whether one of the two has told of its life, or it was found silent."""
    return (has_port and seen.port_silent_since is None) or seen.moves or seen.silent


def all_seems_well(seen: Seen, *, has_port: bool) -> bool:
    """Then an old Lease does, out of the API server's memory."""
    return has_port and seen.port_silent_since is None and not seen.read_at > seen.moved_at


def lease_pause_s(seen: Seen, *, has_port: bool, random: float) -> float:
    """From one reading to the next. random: 0 to 1."""
    if seen.port_silent_since is not None and seen.answered:
        return PAUSE_SILENT_S
    return PAUSE_WELL_S * (1 + random) if all_seems_well(seen, has_port=has_port) else PAUSE_S


def _stands(seen: Seen, since: float, limit_s: float) -> bool:
    """Whether the Lease has stood for so long, and not only until `since`."""
    return (
        seen.read_at - max(seen.steady_since, since) >= limit_s
        or seen.read_at - max(seen.moved_at, since) >= limit_s + PATCHY_S
    )
