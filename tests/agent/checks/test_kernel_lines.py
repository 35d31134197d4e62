"""How many lines of the kernel's log within which time make a class true."""

import re

from agent.checks.kernel_lines import LogClass, Trouble, more
from tools.kit.cases import cases

TWICE_IN_A_MINUTE = LogClass(re.compile("I/O error"), count=2, window_s=60.0)


@cases(
    "second_line_at_s, expected",
    ("a second line at the end of the window is within it", 160.0, 160.0),
    ("a second line after the window begins a new one", 160.1, None),
)
def test_lines_within_the_window_make_a_class_true(second_line_at_s: float, expected: float | None) -> None:
    once = more(Trouble(), TWICE_IN_A_MINUTE, "I/O error", 100.0)
    twice = more(once, TWICE_IN_A_MINUTE, "I/O error", second_line_at_s)
    assert (None, expected) == (once.true_at_s, twice.true_at_s)
