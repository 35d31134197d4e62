"""The check `timeSync`: what the kernel says of its clock."""

import struct
from functools import partial

from agent.checks.builtin.time_sync import STA_NANO, STA_UNSYNC, Check, Clock, Settings, clock_of, judged, timex
from agent.checks.state import CheckState, Finding
from tools.kit.cases import cases

failed, passed, warned = (
    partial(Finding, state) for state in (CheckState.FAILED, CheckState.PASSED, CheckState.WARNED)
)

DEFAULTS = Settings()


def kernel(*, offset: int = 0, maxerror_us: int = 0, esterror_us: int = 0, status: int = 0) -> bytes:
    return struct.pack("@Illlli", 0, offset, 0, maxerror_us, esterror_us, status).ljust(512, b"\0")


@cases(
    "timex, expected",
    ("a bound", kernel(maxerror_us=500_000), Clock(True, 0.0, 0.5)),
    ("the larger counts", kernel(maxerror_us=50_000, esterror_us=20_000, offset=-30_000), Clock(True, 0.03, 0.05)),
    ("as chrony and ntpd tell it", kernel(maxerror_us=50_000, esterror_us=20_000), Clock(True, 0.02, 0.05)),
    ("as phc2sys leaves it, PTP", kernel(maxerror_us=500, esterror_us=16_000_000), Clock(True, 0.0005, 0.0005)),
    ("in nanoseconds", kernel(offset=30_000_000, status=STA_NANO), Clock(True, 0.03, 0.0)),
    ("not synchronised", kernel(status=STA_UNSYNC | STA_NANO), Clock(False, 0.0, 0.0)),
)
def test_the_kernels_numbers(timex: bytes, expected: Clock) -> None:
    assert expected == clock_of(timex)


LATE = "not corrected for long"
NOBODY = "the clock is not synchronised: no time service corrects it"


@cases(
    "clock, expected",
    ("good", Clock(True, 0.099, 1.0), passed("about 99 ms off, at most 1000 ms")),
    ("warns", Clock(True, 0.1, 0.2), warned("the clock is about 100 ms off, fails at 500 ms")),
    ("fails", Clock(True, 0.5, 0.6), failed("the clock is about 500 ms off, limit 500 ms")),
    ("late", Clock(True, 0.0, 2.5), warned(f"the clock may be up to 2500 ms off: {LATE}")),
    ("timesyncd, just before its next sample", Clock(True, 0.0, 1.02), passed("about 0 ms off, at most 1020 ms")),
    ("nobody keeps it", Clock(False, 16.0, 16.0), warned(NOBODY)),
)
def test_how_far_off_it_may_be(clock: Clock, expected: Finding) -> None:
    assert expected == judged(clock, DEFAULTS)


def test_a_clock_that_nobody_keeps_fails_by_choice() -> None:
    strict = Settings(unsynchronized="fail")
    assert Finding(CheckState.FAILED, NOBODY) == judged(Clock(False, 16.0, 16.0), strict)


def test_a_kernel_that_does_not_tell_is_unknown() -> None:
    def refuse() -> bytes:
        raise PermissionError(1, "Operation not permitted")

    found = Check(DEFAULTS, 1.0, refuse)()
    expected = "the kernel does not tell of its clock: [Errno 1] Operation not permitted"
    assert Finding(CheckState.UNKNOWN, expected) == found


def test_this_machines_kernel_tells() -> None:
    clock = clock_of(timex())
    assert 0.0 <= clock.estimate_s < 3600.0
    assert 0.0 <= clock.bound_s <= 3600.0
    assert Check(DEFAULTS, 1.0)().state in {CheckState.PASSED, CheckState.WARNED, CheckState.FAILED}
