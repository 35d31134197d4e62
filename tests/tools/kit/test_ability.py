"""A test that a machine cannot run says why, and is no success where it must run."""

import pytest

from tools.kit.ability import cannot_run


@pytest.mark.parametrize(
    ("ci", "outcome"),
    [
        pytest.param("", pytest.skip.Exception, id="on somebody's machine it is skipped"),
        pytest.param("false", pytest.skip.Exception, id="a false CI is none"),
        pytest.param("true", pytest.fail.Exception, id="in CI it has failed"),
        pytest.param("1", pytest.fail.Exception, id="however CI is spelled"),
    ],
)
def test_what_becomes_of_it(monkeypatch, ci, outcome):
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match=r"^needs root$"):
        cannot_run("needs root")
