"""How much of a processor the pages may take."""

import pytest

from extender.web.app import create_app
from extender.web.page_budget import PageBudget
from tests.extender.web.test_app import Shown


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param([(0.0, 0.1)] * 5, [0.0] * 5, id="what was saved may be taken at once"),
        pytest.param([(0.0, 0.5), (0.0, 0.1)], [0.0, 1.0], id="beyond it the share of a processor"),
        pytest.param([(0.0, 0.55), (0.5, 0.05)], [0.5, 0.5], id="who has waited may take as much again"),
        pytest.param([(0.0, 5.0)], [1.0], id="nobody waits longer than a second"),
        pytest.param([(0.0, 0.55), (100.0, 0.5), (100.0, 0.05)], [0.5, 0.0, 0.5], id="a long rest saves no more"),
        pytest.param([(0.0, 99.0), (1.0, 0.0)], [1.0, 0.0], id="what a crowd took beyond all is forgotten in a second"),
    ],
)
def test_pace(asked, expected):
    pace = PageBudget(share=0.1, saved_s=0.5)
    assert pytest.approx(expected) == [pace.took(processor_s, monotonic) for monotonic, processor_s in asked]


@pytest.mark.parametrize(
    ("before", "asked_s", "expected"),
    [
        pytest.param(0.0, 0.02, 0.0, id="nothing while there is some left"),
        pytest.param(0.5, 0.02, 0.2, id="for itself where nothing is left"),
        pytest.param(9.0, 0.02, 0.2, id="and not for what others have taken"),
    ],
)
def test_how_long_an_answer_that_has_begun_waits(before, asked_s, expected):
    pace = PageBudget(share=0.1, saved_s=0.5)
    pace.took(before, 0.0)
    assert pytest.approx(expected) == pace.took(asked_s, 0.0, within=True)


def test_who_asks_for_pages_waits_and_probes_do_not(monkeypatch):
    waited = []
    monkeypatch.setattr("extender.web.throttle.time.sleep", waited.append)
    pace = PageBudget(saved_s=0.0, share=1e-6)
    client = create_app(Shown(), pace=pace).test_client()
    for path in ("/livez", "/readyz", "/metrics", "/api/v1/nodes"):
        assert client.get(path).status_code == 200
    assert waited == [1.0, 1.0]
