"""What is told of checks that do not pass keeps its text until they pass again."""

from dataclasses import replace

from agent.checks.last_failures import OUTPUT_LIMIT, Said
from agent.checks.state import CheckState, CheckStatus, Severity

PASSED = CheckStatus("dns", Severity.GATE, since=1.0, state=CheckState.PASSED, output="ok")
FAILED = replace(PASSED, state=CheckState.FAILED, since=5.0, output="timed out after 1003 ms")


def told(output: str, state: str = "failed", check: str = "dns", severity: str = "gate"):
    return {"check": check, "severity": severity, "state": state, "output": output}, 1.0


def test_a_check_that_passes_or_starts_is_not_told_of():
    not_applicable = CheckStatus("addresses", Severity.WARN, since=0.0, state=CheckState.NOT_APPLICABLE)
    assert Said().samples([PASSED, not_applicable, CheckStatus("new", Severity.GATE, since=0.0)]) == []


def test_the_text_stays_as_it_was_while_the_check_does_not_pass():
    said = Said()
    assert [told("timed out after 1003 ms")] == said.samples([FAILED])
    assert [told("timed out after 1003 ms")] == said.samples([replace(FAILED, output="timed out after 1007 ms")])
    assert [told("timed out after 1003 ms", "hung")] == said.samples(
        [replace(FAILED, state=CheckState.HUNG, output="?")]
    )


def test_the_next_fault_tells_its_own():
    said = Said()
    said.samples([FAILED])
    assert [] == said.samples([PASSED])
    assert [told("refused")] == said.samples([replace(FAILED, since=9.0, output="refused")])


def test_two_checks_are_told_apart_and_a_long_text_is_cut():
    other = CheckStatus("log", Severity.WARN, since=5.0, state=CheckState.UNKNOWN, output="x" * 999)
    assert [told("timed out after 1003 ms"), told("x" * OUTPUT_LIMIT, "unknown", "log", "warn")] == Said().samples(
        [FAILED, other]
    )
