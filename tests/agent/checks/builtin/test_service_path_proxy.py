"""The check `servicePath` on kube-proxy that is replaced, which is no fault of a node, and on one that stays away."""

import pytest

from agent.checks.builtin import service_path
from agent.checks.builtin.service_path import Check, Settings
from agent.checks.state import CheckState
from tests.agent.checks.builtin.test_service_path import ways

WELL = "service reached, proxy reached, peer reached, peer reached"
GONE = "service reached, proxy refused, peer reached, peer reached"
HANGS = "service reached, proxy silent, peer reached, peer reached"
CUT = "service silent, proxy refused, peer reached, peer reached"


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        pytest.param([(0, WELL), (10, GONE), (119, GONE)], "warned", id="it is replaced, which takes two minutes"),
        pytest.param([(0, WELL), (10, GONE), (120, GONE)], "failed", id="it stays away"),
        pytest.param([(0, WELL), (100, GONE), (110, WELL), (220, GONE)], "warned", id="it is replaced again"),
        pytest.param([(0, GONE)], "failed", id="it never was there"),
        pytest.param([(0, WELL), (10, HANGS)], "failed", id="it hangs"),
        pytest.param([(0, WELL), (10, CUT)], "failed", id="it has gone, and its rules lead nowhere"),
    ],
)
def test_a_proxy_that_is_replaced_leaves_its_rules_and_closes_no_node(
    monkeypatch: pytest.MonkeyPatch, runs: list[tuple[float, str]], expected: str
) -> None:
    now_s = 0.0
    check = Check(Settings(proxy="10.0.0.1"), 5.0, lambda: now_s)
    for now_s, seen in runs:  # noqa: B007 - the clock
        monkeypatch.setattr(service_path, "look_all", lambda *_, seen=seen: ways(seen))
        found = check()
    assert CheckState(expected) is found.state, found.output


def test_it_is_told_for_how_long_it_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = iter([0.0, 12.0])
    check = Check(Settings(proxy="10.0.0.1"), 5.0, now_s.__next__)
    said = []
    for seen in ("proxy reached", "proxy refused"):
        monkeypatch.setattr(service_path, "look_all", lambda *_, seen=seen: ways(seen))
        said.append(check().output)
    assert "proxy 10.0.0.1:10256: just gone (for 12 s)" == said[1]
