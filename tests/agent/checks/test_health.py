"""What findings make of a check, and checks of a node."""

from dataclasses import replace

import pytest

from agent.checks.health import (
    CheckState,
    CheckStatus,
    Finding,
    Severity,
    Thresholds,
    Verdict,
    condition_message,
    next_status,
    one_line,
    overdue,
    readyz_text,
    verdict,
)

NOW = 1_000_000.0
STATES = {
    "p": CheckState.PASSED,
    "f": CheckState.FAILED,
    "u": CheckState.UNKNOWN,
    "h": CheckState.HUNG,
    "s": CheckState.STARTING,
}


def check(state: str = "s", name: str = "cni", *, warn: bool = False, output: str = "") -> CheckStatus:
    severity = Severity.WARN if warn else Severity.GATE
    return CheckStatus(name, severity, since=NOW, state=STATES[state], output=output)


def after(findings: str, success: int = 1, failure: int = 3) -> str:
    """The states after each finding, a letter each."""
    status, seen = check(), ""
    for index, letter in enumerate(findings):
        status = next_status(status, Finding(STATES[letter]), Thresholds(success, failure), NOW + index)
        seen += status.state[0]
    return seen


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        pytest.param("p", "p", id="the first success is enough"),
        pytest.param("f", "f", id="the first failure is told at once"),
        pytest.param("h", "h", id="so is a first hang"),
        pytest.param("u", "u", id="and a first run that could not be made"),
        pytest.param("pffp", "pppp", id="failures below the threshold"),
        pytest.param("pffff", "pppff", id="failures at the threshold"),
        pytest.param("pfhh", "ppph", id="failures and hangs count together, the last names the state"),
        pytest.param("pfuff", "ppppf", id="an unknown does not break a run of failures"),
        pytest.param("puup", "pppp", id="unknowns below the threshold"),
        pytest.param("puuu", "pppu", id="unknowns at the threshold"),
        pytest.param("puuupuu", "pppuppp", id="a success ends the unknown"),
        pytest.param("pfffuf", "pppfuf", id="what has not passed shows the newest finding"),
        pytest.param("puuuff", "pppuuu", id="what passed before it was unknown is protected still"),
        pytest.param("puuufff", "pppuuuf", id="until failures reach the threshold"),
        pytest.param("pfffp", "pppfp", id="one success heals"),
    ],
)
def test_thresholds_3_and_1(findings: str, expected: str) -> None:
    assert expected == after(findings)


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        pytest.param("ppp", "ssp", id="three successes to begin with"),
        pytest.param("pppfpp", "sspfff", id="and three to heal"),
        pytest.param("pppfppp", "sspfffp", id="healed by the third"),
    ],
)
def test_a_success_threshold_of_3(findings: str, expected: str) -> None:
    assert expected == after(findings, success=3, failure=1)


@pytest.mark.parametrize(
    ("findings", "keep", "expected"),
    [
        pytest.param("u", True, False, id="never passed: closed, whatever the policy"),
        pytest.param("uuuuu", True, False, id="also after many"),
        pytest.param("fu", True, False, id="failed before: closed"),
        pytest.param("pfffu", True, False, id="failed after it had passed: closed"),
        pytest.param("puuu", True, True, id="passed before, keep: open"),
        pytest.param("puuuuuuuu", True, True, id="as long as it lasts"),
        pytest.param("puuu", False, False, id="passed before, close: closed"),
        pytest.param("puu", False, True, id="close, below the threshold: open"),
        pytest.param("puuuff", True, True, id="kept, failures below the threshold: open"),
        pytest.param("puuufff", True, False, id="kept, failures at the threshold: closed"),
        pytest.param("puuufffu", True, False, id="what failed after it was kept is not kept again"),
        pytest.param("puuup", True, True, id="back"),
    ],
)
def test_a_check_that_can_no_longer_be_run(findings: str, keep: bool, expected: bool) -> None:
    status = check()
    for letter in findings:
        status = next_status(status, Finding(STATES[letter]), Thresholds(1, 3, keep_unknown=keep), NOW)
    assert expected == verdict([status]).healthy


def test_what_is_kept_is_told_and_never_called_passed() -> None:
    status = check("p")
    for second in range(3):
        status = next_status(status, Finding(STATES["u"], "Permission denied"), Thresholds(), NOW + second)
    kept = verdict([status, check("p", "dns")])
    assert (True, "CheckUnknown") == (kept.healthy, kept.reason)
    line = "cni: unknown, passed before and kept open, since"
    assert f"ok\n{line} 5 s: Permission denied\n" == readyz_text(kept, NOW + 7)
    assert f"no gate check fails; {line} 1970-01-12T13:46:42Z: Permission denied" == condition_message(kept)
    assert kept.identity != verdict([check("p"), check("p", "dns")]).identity


def test_a_warning_is_told_and_never_closes() -> None:
    for state in "fhu":
        warned = verdict([check("p"), check(state, "dns", warn=True, output="no such host")])
        assert warned.healthy
        assert readyz_text(warned, NOW) == f"ok\ndns: {STATES[state]} (warn) since 0 s: no such host\n"
        assert "all checks passed" not in condition_message(warned)
        assert warned.identity == verdict([check("p")]).identity, "a warning that flaps costs no writes"
        assert warned.words != verdict([check("p")]).words
    assert readyz_text(verdict([check("p"), check("s", "dns", warn=True)]), NOW) == "ok\n"


def test_since_moves_when_a_check_ceases_to_pass_not_when_the_kind_changes() -> None:
    status, since = check(), []
    for index, letter in enumerate("pfhup"):
        status = next_status(status, Finding(STATES[letter]), Thresholds(1, 1), NOW + index)
        since.append(status.since - NOW)
    assert since == [0, 1, 1, 1, 4]


def test_a_run_that_does_not_come_back_is_shown_as_hung() -> None:
    shown = overdue(check("p"), 4.0, 10.0, Thresholds(1, 1), NOW + 10)
    assert (CheckState.HUNG, NOW + 6) == (shown.state, shown.since)
    assert NOW == overdue(check("f"), 4.0, 10.0, Thresholds(), NOW + 10).since


@pytest.mark.parametrize(
    ("findings", "late_s", "expected"),
    [
        pytest.param("p", 2.1, "passed", id="one run of three"),
        pytest.param("p", 19.9, "passed", id="two"),
        pytest.param("p", 20.0, "hung", id="three"),
        pytest.param("pff", 2.1, "hung", id="one after two failures"),
        pytest.param("puuu", 2.1, "unknown", id="what is kept is protected too"),
        pytest.param("", 2.1, "hung", id="what never passed is not protected"),
    ],
)
def test_a_run_that_does_not_come_back_counts_as_the_runs_it_stands_for(
    findings: str, late_s: float, expected: str
) -> None:
    status = check()
    for letter in findings:
        status = next_status(status, Finding(STATES[letter]), Thresholds(1, 3), NOW)
    assert expected == overdue(status, late_s, 10.0, Thresholds(1, 3), NOW).state


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
def test_verdict(statuses: list[CheckStatus], healthy: bool, reason: str) -> None:
    found = verdict(statuses)
    assert (healthy, reason) == (found.healthy, found.reason)


def test_the_pages_words() -> None:
    assert readyz_text(verdict([check("p")]), NOW) == "ok\n"
    broken = verdict([check("f", output="no config"), check("s", "dns")])
    assert readyz_text(broken, NOW + 7.9) == "cni: failed since 7 s: no config\ndns: starting since 7 s\n"
    assert condition_message(broken).startswith(
        "cni: failed since 1970-01-12T13:46:40Z: no config; dns: starting since"
    )
    assert condition_message(verdict([check("p")])) == "all checks passed (1)"


def test_another_output_is_not_another_verdict() -> None:
    one, two = verdict([check("f", output="1")]), verdict([check("f", output="2")])
    assert one.identity == two.identity
    assert one.identity != verdict([check("h")]).identity
    assert Verdict(healthy=True, reason="ChecksPassed").identity != one.identity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a\r\n b\t\x1b[31mc\x00", "a b [31mc", id="line breaks and control characters"),
        pytest.param("x" * 300, "x" * 256, id="cut to 256 bytes"),
        pytest.param("é" * 200, "é" * 128, id="cut at a character's border"),
        pytest.param("x" * 255 + "é", "x" * 255, id="no half character"),
    ],
)
def test_one_line(text: str, expected: str) -> None:
    assert expected == one_line(text)


def test_a_message_of_many_checks_stays_short() -> None:
    many = verdict([replace(check("f", output="x" * 256), name=f"check-{n}") for n in range(20)])
    assert len(condition_message(many).encode()) <= 1024
