"""What the states of all checks make of the node, and the words that say it."""

from dataclasses import replace

import pytest

from agent.checks.health import NodeHealth, condition_message, log_text, node_health, readyz_text
from agent.checks.state import CheckStatus
from tests.agent.checks.builders import STATES, WALL, after, check


@pytest.mark.parametrize(
    ("statuses", "healthy", "reason"),
    [
        pytest.param([check("p")], True, "ChecksPassed", id="all passed"),
        pytest.param([check("p"), check("f", warn=True)], True, "ChecksPassed", id="a warning does not close"),
        pytest.param([check("p"), check("s")], False, "Starting", id="one has no result yet"),
        pytest.param([check("s"), check("f")], False, "CheckFailed", id="one starts, one failed"),
        pytest.param([check("p"), check("h")], False, "CheckFailed", id="one hangs"),
        pytest.param([check("p"), check("u")], False, "CheckUnknown", id="one could not run"),
        pytest.param([check("u"), check("f")], False, "CheckFailed", id="a failure is worse than an unknown"),
    ],
)
def test_the_worst_gate_check_decides(statuses: list[CheckStatus], healthy: bool, reason: str) -> None:
    found = node_health(statuses)
    assert (healthy, reason) == (found.healthy, found.reason)


def test_what_is_kept_is_said_and_never_called_passed() -> None:
    kept = node_health([after("puuu", output="Permission denied"), check("p", "dns")])
    assert (True, "CheckUnknown") == (kept.healthy, kept.reason)
    line = "cni: unknown, passed before and kept open, since"
    assert f"ok\n{line} 5 s: Permission denied\n" == readyz_text(kept, WALL + 9)
    assert f"no gate check fails; {line} 1970-01-12T13:46:44Z: Permission denied" == condition_message(kept)
    assert kept.identity != node_health([check("p"), check("p", "dns")]).identity


def test_what_is_shared_is_said_and_costs_no_write() -> None:
    """It comes to all nodes at once: five thousand of them would write."""
    shared = node_health([after("pS", output="all 8 ways: SERVFAIL"), check("p", "dns")])
    assert (True, "ChecksPassed") == (shared.healthy, shared.reason)
    line = "cni: shared, not of this node alone, since"
    assert f"ok\n{line} 7 s: all 8 ways: SERVFAIL\n" == readyz_text(shared, WALL + 9)
    assert f"no gate check fails; {line} 1970-01-12T13:46:42Z: all 8 ways: SERVFAIL" == condition_message(shared)
    assert shared.identity == node_health([check("p"), check("p", "dns")]).identity
    assert shared.log_key != node_health([check("p"), check("p", "dns")]).log_key


def test_what_had_failed_before_it_was_shared_stays_closed() -> None:
    closed = node_health([after("fS", output="SERVFAIL")])
    assert (False, "CheckUnknown") == (closed.healthy, closed.reason)
    assert "cni: shared since 8 s: SERVFAIL\n" == readyz_text(closed, WALL + 9)


def test_a_warning_is_said_and_never_closes() -> None:
    for state in "fhu":
        warned = node_health([check("p"), check(state, "dns", warn=True, output="no such host")])
        assert warned.healthy
        assert readyz_text(warned, WALL) == f"ok\ndns: {STATES[state]} (warn) since 0 s: no such host\n"
        assert "all checks passed" not in condition_message(warned)
        assert warned.identity == node_health([check("p")]).identity, "a warning that flaps costs no writes"
        assert warned.log_key != node_health([check("p")]).log_key
    assert readyz_text(node_health([check("p"), check("s", "dns", warn=True)]), WALL) == "ok\n"


def test_a_check_that_warns_is_said_and_never_closes() -> None:
    for warn in (False, True):
        warned = node_health([check("p"), check("w", "addresses", warn=warn, output="12 of 254 are free")])
        assert (True, "ChecksPassed") == (warned.healthy, warned.reason)
        assert readyz_text(warned, WALL) == "ok\naddresses: warned since 0 s: 12 of 254 are free\n"
        assert warned.identity == node_health([check("p")]).identity, "a warning that flaps costs no writes"
        assert warned.log_key != node_health([check("p")]).log_key


def test_what_is_not_applicable_is_said_and_never_counted() -> None:
    """Whatever its severity: in the message where nothing else is to be said, and once in the log."""
    for warn in (False, True):
        left_out = check("n", "addresses", warn=warn, output="the addresses of calico-ipam cannot be counted here")
        found = node_health([check("p"), left_out])
        assert (True, "ChecksPassed", 1) == (found.healthy, found.reason, found.checks)
        assert ("ok\n", "all checks passed (1); not applicable: addresses") == (
            readyz_text(found, WALL),
            condition_message(found),
        )
        assert found.identity == node_health([check("p")]).identity, "it comes to all nodes at once"
        assert found.log_key != node_health([check("p"), check("p", "addresses")]).log_key
        closed = node_health([check("f", output="no config"), left_out])
        assert "cni: failed since 1970-01-12T13:46:40Z: no config" == condition_message(closed)


def test_where_no_check_is_applicable_none_has_passed() -> None:
    found = node_health([check("n"), check("n", "addresses", warn=True)])
    assert (True, "no check is applicable: cni, addresses") == (found.healthy, condition_message(found))


def test_the_pages_words() -> None:
    assert readyz_text(node_health([check("p")]), WALL) == "ok\n"
    broken = node_health([check("f", output="no config"), check("s", "dns")])
    assert readyz_text(broken, WALL + 7.9) == "cni: failed since 7 s: no config\ndns: starting since 7 s\n"
    assert condition_message(broken).startswith(
        "cni: failed since 1970-01-12T13:46:40Z: no config; dns: starting since"
    )
    assert condition_message(node_health([check("p")])) == "all checks passed (1)"


def test_a_fact_of_the_log_has_no_colon_without_an_output() -> None:
    assert "cni: failed: no config; dns: starting" == log_text([check("f", output="no config"), check("s", "dns")])


def test_another_output_is_not_another_health() -> None:
    one, two = node_health([check("f", output="1")]), node_health([check("f", output="2")])
    assert one.identity == two.identity
    assert one.identity != node_health([check("h")]).identity
    assert NodeHealth(healthy=True, reason="ChecksPassed").identity != one.identity


def test_a_message_of_many_checks_stays_short() -> None:
    many = node_health([replace(check("f", output="x" * 256), name=f"check-{n}") for n in range(20)])
    assert len(condition_message(many).encode()) <= 1024
