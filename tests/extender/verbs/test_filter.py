import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.verbs.filter import split

REASONS = {"a": "", "b": "", "bad": "why"}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["b", "a"], (["b", "a"], {}), id="all open, in the order asked"),
        pytest.param(["b", "bad", "x", "a"], (["b", "a"], {"bad": "why", "x": "unknown"}), id="mixed"),
        pytest.param(["bad"], ([], {"bad": "why"}), id="none left"),
        pytest.param([], ([], {}), id="none asked"),
        pytest.param(["a", "bad", "a", "bad"], (["a"], {"bad": "why"}), id="asked twice, answered once"),
    ],
)
def test_split(names, expected):
    assert expected == split(names, REASONS, "unknown")


@given(st.lists(st.sampled_from(["a", "b", "bad", "x", "y"])))
def test_every_name_is_on_exactly_one_side(names):
    survivors, refused = split(names, REASONS, "unknown")
    assert sorted(set(names)) == sorted([*survivors, *refused])


def test_a_name_is_looked_up_once_though_asked_twice():
    class Flips(dict):
        answers = iter(["", "why"])

        def get(self, *_):
            return next(self.answers)

    assert split(["a", "a"], Flips(), "unknown") == (["a"], {})
