"""The check `timeSync`: is the node's clock kept, and how far may it be off?

Asks the kernel (adjtimex, which changes nothing), not a time service by name: chrony, ntpd and timesyncd report to the
kernel what they know. The estimate is the larger of the kernel's estimated error and of
the offset that it is still correcting: from `warnMilliseconds` on the check warns, from `failMilliseconds` on it
fails. No estimate is larger than the upper bound: whoever tells the kernel a bound alone (phc2sys, for clocks kept by
PTP) leaves the estimate at the sixteen seconds that it has before anybody has told it.

The kernel's upper bound of the error grows by half a millisecond a second between two corrections. A large bound does
not mean that the clock is wrong: beyond `boundMilliseconds` the check warns.

The clock is synchronized while the bound is below its limit of 16 seconds, as for systemd (`timedatectl`). The bound is
at the limit after nine hours without a correction, after the time was set by hand, and where nothing has reported a
bound since the boot. Then the check warns; `unsynchronized: fail` makes that a failure. The kernel's flag STA_UNSYNC
does not count: chrony without `rtcsync` leaves it set while it keeps the clock.

The way back is the next run after the service has corrected the clock.
"""

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from component.settings import Section

DOC = "the kernel's clock is synchronized, and its error is below the limit"
RIGHTS = Rights(clock=True)
STA_NANO = 0x2000
LIMIT_S = 16  # of the kernel's bound (NTP_PHASE_LIMIT); systemd's ntp_synced compares with the same
# struct timex, its first fields: modes, offset, freq, maxerror, esterror, status.
_TIMEX = struct.Struct("@Illlli")
_TIMEX_BYTES = 512  # more than any architecture has
_Milliseconds = Annotated[int, Meta(ge=1, le=3_600_000, description="milliseconds, 1 to 3600000")]


class Settings(Section, frozen=True):
    warn_milliseconds: _Milliseconds = 100
    fail_milliseconds: _Milliseconds = 500
    bound_milliseconds: _Milliseconds = 2000
    unsynchronized: Literal["warn", "fail"] = "warn"


@dataclass(frozen=True, slots=True)
class Clock:
    """What the kernel says of its clock, in seconds. `bound_s`: the most that it can be off."""

    synchronized: bool
    estimate_s: float
    bound_s: float


class Check:
    def __init__(self, settings: Settings, _timeout_s: float, read: Callable[[], bytes] | None = None) -> None:
        self._settings = settings
        self._read = read or timex

    def __call__(self) -> Finding:
        """PASSED, WARNED, FAILED, or UNKNOWN where the kernel does not say."""
        try:
            clock = clock_of(self._read())
        except (OSError, AttributeError) as e:
            return Finding(CheckState.UNKNOWN, f"the kernel does not tell of its clock: {e}")
        return judged(clock, self._settings)


def timex() -> bytes:
    """The kernel's struct timex. Raises OSError, AttributeError without such a call in the C library."""
    import ctypes  # late: a megabyte, for those who have this check

    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)
    if ctypes.CDLL(None, use_errno=True).adjtimex(buffer) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return buffer.raw


def clock_of(timex: bytes) -> Clock:
    _modes, offset, _freq, maxerror_us, esterror_us, status = _TIMEX.unpack_from(timex)
    offset_s = abs(offset) / (1e9 if status & STA_NANO else 1e6)
    estimate_s = min(esterror_us, maxerror_us) / 1e6
    return Clock(maxerror_us < LIMIT_S * 1_000_000, max(estimate_s, offset_s), maxerror_us / 1e6)


def judged(found: Clock, settings: Settings) -> Finding:
    estimate = f"about {_ms(found.estimate_s)} off"
    if not found.synchronized:
        # Its other numbers mean nothing then: the kernel sets them to their limit.
        state = CheckState.FAILED if settings.unsynchronized == "fail" else CheckState.WARNED
        return Finding(
            state, f"the clock is not synchronized: its maximum error is at the kernel's limit of {LIMIT_S} s"
        )
    if found.estimate_s * 1000 >= settings.fail_milliseconds:
        return Finding(CheckState.FAILED, f"the clock is {estimate}, limit {settings.fail_milliseconds} ms")
    if found.estimate_s * 1000 >= settings.warn_milliseconds:
        return Finding(CheckState.WARNED, f"the clock is {estimate}, fails at {settings.fail_milliseconds} ms")
    if found.bound_s * 1000 >= settings.bound_milliseconds:
        bound = f"the clock may be up to {_ms(found.bound_s)} off"
        return Finding(CheckState.WARNED, f"{bound}, warns at {settings.bound_milliseconds} ms")
    return Finding(CheckState.PASSED, f"{estimate}, at most {_ms(found.bound_s)}")


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
