"""The check `timeSync`: what the kernel says of its clock."""

import struct
from functools import partial

from agent.checks.builtin.time_sync import STA_NANO, Check, Clock, Settings, clock_of, judged, timex
from agent.checks.state import CheckState, Finding
from tools.kit.cases import cases

failed, passed, warned = (
    partial(Finding, state) for state in (CheckState.FAILED, CheckState.PASSED, CheckState.WARNED)
)

DEFAULTS = Settings()
STA_PLL, STA_UNSYNC = 0x0001, 0x0040


def kernel(*, offset: int = 0, maxerror_us: int = 0, esterror_us: int = 0, status: int = 0) -> bytes:
    return struct.pack("@Illlli", 0, offset, 0, maxerror_us, esterror_us, status).ljust(512, b"\0")


@cases(
    "timex, expected",
    ("a bound", kernel(maxerror_us=500_000), Clock(True, 0.0, 0.5)),
    ("the larger counts", kernel(maxerror_us=50_000, esterror_us=20_000, offset=-30_000), Clock(True, 0.03, 0.05)),
    ("as chrony and ntpd tell it", kernel(maxerror_us=50_000, esterror_us=20_000), Clock(True, 0.02, 0.05)),
    ("as phc2sys leaves it, PTP", kernel(maxerror_us=500, esterror_us=16_000_000), Clock(True, 0.0005, 0.0005)),
    ("in nanoseconds", kernel(offset=30_000_000, status=STA_NANO), Clock(True, 0.03, 0.0)),
)
def test_the_kernels_numbers(timex: bytes, expected: Clock) -> None:
    assert expected == clock_of(timex)


NOBODY = "the clock is not synchronized: its maximum error is at the kernel's limit of 16 s"


@cases(
    "clock, expected",
    ("good", Clock(True, 0.099, 1.0), passed("about 99 ms off, at most 1000 ms")),
    ("warns", Clock(True, 0.1, 0.2), warned("the clock is about 100 ms off, fails at 500 ms")),
    ("fails", Clock(True, 0.5, 0.6), failed("the clock is about 500 ms off, limit 500 ms")),
    ("late", Clock(True, 0.0, 2.5), warned("the clock may be up to 2500 ms off, warns at 2000 ms")),
    ("timesyncd, just before its next sample", Clock(True, 0.0, 1.02), passed("about 0 ms off, at most 1020 ms")),
    ("nobody keeps it", Clock(False, 16.0, 16.0), warned(NOBODY)),
)
def test_how_far_off_it_may_be(clock: Clock, expected: Finding) -> None:
    assert expected == judged(clock, DEFAULTS)


def test_a_clock_that_nobody_keeps_fails_by_choice() -> None:
    strict = Settings(unsynchronized="fail")
    assert Finding(CheckState.FAILED, NOBODY) == judged(Clock(False, 16.0, 16.0), strict)


LIMIT_US = 16_000_000
REPORTED = [
    (
        "bottlerocket-os/bottlerocket#1183, awslabs/amazon-eks-ami#142: chrony without rtcsync leaves STA_UNSYNC set",
        kernel(maxerror_us=1098, esterror_us=564, status=STA_UNSYNC | STA_NANO),
        passed("about 1 ms off, at most 1 ms"),
    ),
    (
        "balena-os/meta-balena#1852: chrony with one server, far away",
        kernel(maxerror_us=9776, esterror_us=43, status=STA_UNSYNC),
        passed("about 0 ms off, at most 10 ms"),
    ),
    (
        "ethstaker/eth-docker#2645: a maximum error of 0.4 s is usual",
        kernel(maxerror_us=400_000, esterror_us=900, status=STA_UNSYNC),
        passed("about 1 ms off, at most 400 ms"),
    ),
    (
        "prometheus/node_exporter#1850: without rtcsync, and no answer for two hours",
        kernel(maxerror_us=3_601_000, esterror_us=564, status=STA_UNSYNC),
        warned("the clock may be up to 3601 ms off, warns at 2000 ms"),
    ),
    (
        "oxidecomputer/omicron#10318: it follows a server that is itself far off",
        kernel(offset=700_000_000, maxerror_us=900_000, esterror_us=600_000, status=STA_UNSYNC | STA_NANO),
        failed("the clock is about 700 ms off, limit 500 ms"),
    ),
    (
        "just below the limit",
        kernel(maxerror_us=LIMIT_US - 1, status=STA_UNSYNC),
        warned("the clock may be up to 16000 ms off, warns at 2000 ms"),
    ),
    (
        "kairos-io/kairos#519, openntpd-portable/openntpd-portable#65: OpenNTPD runs and reports no bound",
        kernel(maxerror_us=LIMIT_US, esterror_us=LIMIT_US, status=STA_UNSYNC),
        warned(NOBODY),
    ),
    (
        "openshift/origin#22842: the time was set by hand, which clears the bound",
        kernel(maxerror_us=LIMIT_US, esterror_us=LIMIT_US, status=STA_PLL | STA_UNSYNC | STA_NANO),
        warned(NOBODY),
    ),
    (
        "a service that clears STA_UNSYNC and reports no bound: the kernel sets the flag again within a second",
        kernel(maxerror_us=LIMIT_US, esterror_us=LIMIT_US, status=STA_PLL),
        warned(NOBODY),
    ),
]


@cases("timex, expected", *REPORTED)
def test_the_bound_says_whether_the_clock_is_synchronized(timex: bytes, expected: Finding) -> None:
    """As systemd/systemd#13245: the flag is for the hardware clock alone."""
    assert expected == Check(DEFAULTS, 1.0, lambda: timex)()


@cases("timex, expected", *REPORTED)
def test_only_a_bound_at_its_limit_fails_by_choice(timex: bytes, expected: Finding) -> None:
    strict = Check(Settings(unsynchronized="fail"), 1.0, lambda: timex)()
    assert (failed(NOBODY) if expected == warned(NOBODY) else expected) == strict


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
