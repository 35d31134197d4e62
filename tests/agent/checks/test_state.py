"""What findings make of a check: thresholds, since when, what is kept, what is late."""

import pytest

from agent.checks.health import node_health
from agent.checks.state import CheckState, Thresholds, overdue
from tests.agent.checks.builders import WALL, after


def states_after_each(findings: str, success: int = 1, failure: int = 3) -> str:
    """A letter each."""
    thresholds = Thresholds(success, failure)
    return "".join(after(findings[: count + 1], thresholds).state[0] for count in range(len(findings)))


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        pytest.param("p", "p", id="the first success is enough"),
        pytest.param("f", "f", id="the first failure shows at once"),
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
        pytest.param("wpw", "wpw", id="a warning is a success that shows at once"),
        pytest.param("wffwff", "wwwwww", id="and ends a run of failures as one"),
        pytest.param("wfff", "wwwf", id="what warned before it failed is protected"),
        pytest.param("wuuu", "wwwu", id="also from runs that could not be made"),
        pytest.param("pfffw", "pppfw", id="one warning heals"),
    ],
)
def test_thresholds_3_and_1(findings: str, expected: str) -> None:
    assert expected == states_after_each(findings)


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        pytest.param("ppp", "ssp", id="three successes to begin with"),
        pytest.param("pppfpp", "sspfff", id="and three to heal"),
        pytest.param("pppfppp", "sspfffp", id="healed by the third"),
    ],
)
def test_a_success_threshold_of_3(findings: str, expected: str) -> None:
    assert expected == states_after_each(findings, success=3, failure=1)


@pytest.mark.parametrize(
    ("findings", "keep", "expected"),
    [
        pytest.param("u", True, False, id="never passed: closed, whatever the policy"),
        pytest.param("uuuuu", True, False, id="also after many"),
        pytest.param("fu", True, False, id="failed before: closed"),
        pytest.param("pfffu", True, False, id="failed after it had passed: closed"),
        pytest.param("puuu", True, True, id="passed before, keep: open"),
        pytest.param("puuuuuuuu", True, True, id="up to the eighth run, its limit"),
        pytest.param("puuuuuuuuu", True, False, id="beyond its limit: closed"),
        pytest.param("puuuuuuuuuu", True, False, id="and not kept again"),
        pytest.param("puuuuuuuuup", True, True, id="until it passes"),
        pytest.param("puuuuuuuupuuuuuuuu", True, True, id="a success begins the count anew"),
        pytest.param("puuu", False, False, id="passed before, close: closed"),
        pytest.param("puu", False, True, id="close, below the threshold: open"),
        pytest.param("puuuff", True, True, id="kept, failures below the threshold: open"),
        pytest.param("puuufff", True, False, id="kept, failures at the threshold: closed"),
        pytest.param("puuufffu", True, False, id="what failed after it was kept is not kept again"),
        pytest.param("puuup", True, True, id="back"),
    ],
)
def test_a_check_that_can_no_longer_be_run(findings: str, keep: bool, expected: bool) -> None:
    status = after(findings, Thresholds(1, 3, keep_runs=8 if keep else 0))
    assert expected == node_health([status]).healthy


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        pytest.param("n", "n", id="at once"),
        pytest.param("pn", "pn", id="after a success, without a threshold"),
        pytest.param("pfffn", "pppfn", id="after a failure"),
        pytest.param("nfff", "nnnf", id="failures count up to their threshold"),
        pytest.param("nffnff", "nnnnnn", id="and anew after it"),
        pytest.param("npp", "nnp", id="it is no success of the two that it takes"),
        pytest.param("pnp", "snn", id="nor does it go on with a run of them"),
        pytest.param("nuuuu", "nnnnn", id="runs that cannot be made change nothing for long"),
        pytest.param("n" + 8 * "u" + "u", "n" * 9 + "u", id="but not for ever"),
    ],
)
def test_a_check_that_is_not_applicable(findings: str, expected: str) -> None:
    """Two successes, three failures; runs that could not be made are kept eight times."""
    thresholds = Thresholds(2 if "pp" in findings or "pnp" in findings else 1, 3, keep_runs=8)
    assert expected == "".join(after(findings[: count + 1], thresholds).state[0] for count in range(len(findings)))


def test_what_is_not_applicable_closes_nothing_also_where_nothing_is_kept() -> None:
    states = [after("n" + count * "u", Thresholds(1, 3, keep_runs=0)).state for count in range(4)]
    assert [CheckState.NOT_APPLICABLE] * 3 + [CheckState.UNKNOWN] == states


@pytest.mark.parametrize(
    ("findings", "keep", "expected"),
    [
        pytest.param("S", True, True, id="the first look found nothing of this node: open"),
        pytest.param("pS", False, True, id="passed before: open, also where unknown closes"),
        pytest.param("p" + 50 * "S", True, True, id="for as long as it lasts"),
        pytest.param("puuu" + 50 * "S", True, True, id="what was kept stays so"),
        pytest.param("pu" + 8 * "Su", True, False, id="but does not stop the count of those that could not be made"),
        pytest.param("fS", True, False, id="failed before: closed"),
        pytest.param("pfffSS", True, False, id="failed after it had passed: closed"),
        pytest.param("pfSfSf", True, False, id="it does not break a run of failures"),
        pytest.param("uS", True, False, id="never able to look: closed"),
        pytest.param("fSp", True, True, id="a success opens"),
        pytest.param("Sff", True, True, id="failures below the threshold: open"),
        pytest.param("Sfff", True, False, id="failures at the threshold: closed"),
    ],
)
def test_a_fault_that_other_nodes_share(findings: str, keep: bool, expected: bool) -> None:
    status = after(findings, Thresholds(1, 3, keep_runs=8 if keep else 0))
    assert expected == node_health([status]).healthy


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        pytest.param("pSS", 2, id="from passed to shared"),
        pytest.param("fS", 1, id="failed before: it stays"),
        pytest.param("", 0, id="starting: the start"),
        pytest.param("p", 1, id="from starting to passed"),
        pytest.param("f", 1, id="from starting to failed"),
        pytest.param("ppp", 1, id="passed: it stays"),
        pytest.param("pf", 2, id="from passed to failed"),
        pytest.param("pfhu", 2, id="failed, hung or unknown: the kind of failure does not matter"),
        pytest.param("pfhup", 5, id="back"),
        pytest.param("pu", 2, id="from passed to unknown and kept"),
        pytest.param("puuu", 2, id="kept: it stays"),
        pytest.param("puuf", 4, id="from kept to failed"),
        pytest.param("puuh", 4, id="from kept to hung"),
        pytest.param("puup", 4, id="from kept to passed"),
    ],
)
def test_since_when(findings: str, expected: int) -> None:
    assert expected == after(findings, Thresholds(1, 1)).since - WALL


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        pytest.param("p", 6, id="passed: from its deadline on"),
        pytest.param("f", 1, id="failed: it stays"),
        pytest.param("pu", 6, id="kept: from its deadline on"),
        pytest.param("", 6, id="starting: from its deadline on"),
    ],
)
def test_since_when_a_run_hangs(findings: str, expected: int) -> None:
    hung = overdue(after(findings, Thresholds(1, 1)), 4.0, 10.0, Thresholds(1, 1), WALL + 10)
    assert (CheckState.HUNG, expected) == (hung.state, hung.since - WALL)


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
    assert expected == overdue(after(findings, Thresholds(1, 3)), late_s, 10.0, Thresholds(1, 3), WALL).state


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param("a\r\n b\t\x1b[31mc\x00", "a b [31mc", id="line breaks and control characters"),
        pytest.param("x" * 300, "x" * 256, id="cut to 256 bytes"),
        pytest.param("é" * 200, "é" * 128, id="cut at a character's border"),
        pytest.param("x" * 255 + "é", "x" * 255, id="no half character"),
        pytest.param("a\ud800b", "a b", id="half of a surrogate pair, as an undecodable file name has"),
    ],
)
def test_what_a_check_says_is_one_short_line(output: str, expected: str) -> None:
    assert expected == after("f", output=output).output
