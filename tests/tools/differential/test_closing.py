"""The last line of a comparison: a table of steps shows no other."""

import pytest

from tools.differential import __main__ as differential


@pytest.mark.parametrize(
    ("differing", "missed", "expected"),
    [
        pytest.param([], 0, "2 passed, 0 failed; 0 planted errors missed", id="all equal"),
        pytest.param(
            ["loops"], 0, "1 passed, 1 failed (loops, with seed 7); 0 planted errors missed", id="one target differs"
        ),
        pytest.param(
            ["loops", "http"],
            3,
            "0 passed, 2 failed (loops, http, with seed 7); 3 planted errors missed",
            id="all differ",
        ),
    ],
)
def test_it_names_the_targets_that_differ_and_the_seed_that_shows_it(
    differing: list[str], missed: int, expected: str
) -> None:
    assert expected == differential._closing(["loops", "http"], differing, missed, 7)
