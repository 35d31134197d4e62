"""The check `timeSync`: what the kernel says of its clock."""

import struct

import pytest

from agent.checks.builtin.time_sync import STA_NANO, STA_UNSYNC, Check, Clock, Settings, clock_of, judged, timex
from agent.checks.state import CheckState, Finding

DEFAULTS = Settings()


def kernel(*, offset: int = 0, maxerror_us: int = 0, esterror_us: int = 0, status: int = 0) -> bytes:
    return struct.pack("@Illlli", 0, offset, 0, maxerror_us, esterror_us, status).ljust(512, b"\0")


@pytest.mark.parametrize(
    ("timex", "expected"),
    [
        pytest.param(kernel(maxerror_us=500_000), Clock(True, 0.0, 0.5), id="a bound"),
        pytest.param(
            kernel(maxerror_us=50_000, esterror_us=20_000, offset=-30_000),
            Clock(True, 0.03, 0.05),
            id="the larger of both counts",
        ),
        pytest.param(
            kernel(maxerror_us=50_000, esterror_us=20_000), Clock(True, 0.02, 0.05), id="as chrony and ntpd tell it"
        ),
        pytest.param(
            kernel(maxerror_us=500, esterror_us=16_000_000), Clock(True, 0.0005, 0.0005), id="as phc2sys leaves it, PTP"
        ),
        pytest.param(kernel(offset=30_000_000, status=STA_NANO), Clock(True, 0.03, 0.0), id="in nanoseconds"),
        pytest.param(kernel(status=STA_UNSYNC | STA_NANO), Clock(False, 0.0, 0.0), id="not synchronised"),
    ],
)
def test_the_kernels_numbers(timex: bytes, expected: Clock) -> None:
    assert expected == clock_of(timex)


LATE = "not corrected for long"
NOBODY = "the clock is not synchronised: no time service corrects it"


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        pytest.param(
            Clock(True, 0.099, 1.0), Finding(CheckState.PASSED, "about 99 ms off, at most 1000 ms"), id="good"
        ),
        pytest.param(
            Clock(True, 0.1, 0.2),
            Finding(CheckState.WARNED, "the clock is about 100 ms off, fails at 500 ms"),
            id="warns",
        ),
        pytest.param(
            Clock(True, 0.5, 0.6), Finding(CheckState.FAILED, "the clock is about 500 ms off, limit 500 ms"), id="fails"
        ),
        pytest.param(
            Clock(True, 0.0, 2.5), Finding(CheckState.WARNED, f"the clock may be up to 2500 ms off: {LATE}"), id="late"
        ),
        pytest.param(
            Clock(True, 0.0, 1.02),
            Finding(CheckState.PASSED, "about 0 ms off, at most 1020 ms"),
            id="timesyncd, which looks every 34 minutes, just before it does",
        ),
        pytest.param(Clock(False, 16.0, 16.0), Finding(CheckState.WARNED, NOBODY), id="nobody keeps it"),
    ],
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
