"""The scorecard and the commands agree, and a row that fails says so in every way."""

import json
import os
import random
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tools.chaos import agent_kills, attacks, outages, restarts
from tools.chaos.__main__ import ROWS as CHAOS
from tools.differential import __main__ as differential
from tools.differential.targets import TARGETS
from tools.soak import day, fuzz, histories, keep_alive, rows, slow_clients, stage, updates
from tools.soak.__main__ import ROWS as SOAK
from tools.soak.rows import Row, Trial

SCORECARD = Path(__file__).resolve().parents[3] / "docs" / "reliability.md"
CELLS = re.compile(r"^\| (R\d\d) \| .* \| (.*) \| .* \|$", re.MULTILINE)


@pytest.mark.parametrize(("command", "held"), [("soak", SOAK), ("chaos", CHAOS)], ids=["soak", "chaos"])
def test_the_scorecard_names_the_rows_of(command: str, held: dict[str, Row]) -> None:
    named = {row for row, where in CELLS.findall(SCORECARD.read_text()) if re.search(rf"\b{command}\b", where)}
    assert named == {row for row in held if row.startswith("R")}


def _passes(trial: Trial) -> None:
    trial.at_most(2, "seen", 1, "s")
    trial.tell("told", trial.chance.random(), "")


def _misses(trial: Trial) -> None:
    trial.at_least(2, "seen", 1, "s")


def _breaks(_: Trial) -> None:
    raise RuntimeError("no path\nto go")


@pytest.mark.parametrize(
    ("hold", "expected"),
    [
        pytest.param(_passes, (0, "passed"), id="within its limits"),
        pytest.param(_misses, (1, "FAILED"), id="beyond one"),
        pytest.param(_breaks, (1, "FAILED"), id="that could not be held"),
    ],
)
def test_a_row(hold, expected, tmp_path, capsys):
    save = tmp_path / "build" / "rows.json"
    code = rows.main("soak", {"R99": Row("a row", 1, hold)}, ["--minutes", "0.01", "--save", str(save)])
    written = json.loads(save.read_text())
    assert expected == (code, written["rows"][0]["result"])
    assert f"R99: {expected[1]}" in capsys.readouterr().out


def test_the_form_that_is_shipped_has_the_brakes_and_the_feed():
    own = {"listen": {"port": 0}, "kubernetes": {"server": "here"}, "feed": {"socket": "/there"}, "cap": False}
    shipped = stage.as_shipped(own)
    assert "cap" not in shipped
    assert [{"port": 0}, {"server": "here"}, {"socket": "/there"}] == [
        shipped[key] for key in ("listen", "kubernetes", "feed")
    ]
    assert "armed" == shipped["gates"][0]["enforcement"]


def test_the_seed_repeats_what_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setenv(rows.SEED_VARIABLE, "7")
    drawn = []
    for number in range(2):
        save = tmp_path / f"{number}.json"
        rows.main("soak", {"R99": Row("a row", 1, _passes)}, ["--save", str(save)])
        drawn.append(json.loads(save.read_text())["rows"][0]["figures"])
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        pytest.param([], 0.0, id="nobody looked"),
        pytest.param([(3.0, 80.0)], 0.0, id="one look"),
        pytest.param([(1.0, 80.0), (1.0, 90.0)], 0.0, id="two at the same time"),
        pytest.param([(0.0, 80.0), (1.0, 80.0), (2.0, 80.0)], 0.0, id="nothing grows"),
        pytest.param([(0.0, 80.0), (1.0, 82.0), (2.0, 84.0)], 2.0, id="two an hour"),
        pytest.param([(0.0, 80.0), (1.0, 95.0), (2.0, 80.0)], 0.0, id="a moment's height is no growth"),
    ],
)
def test_growth_is_the_slope_of_all_looks(points, expected):
    assert expected == day.slope(points)


def test_each_duty_is_done_as_often_as_it_is_wanted_and_the_most_frequent_first():
    done = []
    duties = [
        day.Duty("often", 4, 0.01, lambda: done.append("often")),
        day.Duty("once", 1, 0.025, lambda: done.append("once")),
    ]
    day.fulfil(duties, limit_s=20.0, progress=lambda _: None)
    assert (["often", "often", "once", "often", "often"], [4, 1]) == (done, [one.done for one in duties])


def test_what_is_not_done_in_time_is_left():
    never = day.Duty("never", 1, 60.0, lambda: None)
    day.fulfil([never], limit_s=0.0, progress=lambda _: None)
    assert 0 == never.done


def test_a_look_finds_one_thread_and_one_file_more(tmp_path):
    """Counted from before: the test's own process has threads that nobody here has started."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait, args=(20.0,))
    before = day.look([os.getpid()])
    thread.start()
    with (tmp_path / "file").open("w"):
        after = day.look([os.getpid()])
    end.set()
    thread.join()
    assert (1, 1) == (after.threads - before.threads, after.descriptors - before.descriptors)
    assert before.rss_mib > 5
    assert (0.0, 0, 0) == day.look([2**30])[1:]


def _lines(histories: int, said: str = "equal", without: str = "") -> list[str]:
    """As the comparison writes them, of what it plays: so many of each target."""
    names = [target.name for target in TARGETS if target.name != without]
    drivers = dict.fromkeys(names, Path("/nowhere/driver"))
    jobs = differential._jobs(drivers, dict.fromkeys(names, histories), -(-histories // differential.TURN), 7)
    played = dict.fromkeys(names, 0)
    for job in jobs:
        played[job.target] += sum(size for _, size in job.batches)
    return ["seed 1", *(f"{n:<13} {count:>9,} histories   1,000/s a process  {said}" for n, count in played.items())]


@pytest.mark.parametrize(
    ("minutes", "told", "expected"),
    [
        pytest.param(180.0, _lines(1_000_000), [], id="a million of each in its time"),
        pytest.param(18.0, _lines(100_000), [], id="a tenth of them in a tenth of it"),
        pytest.param(1800.0, _lines(1_000_000), [], id="more time asks for no more"),
        pytest.param(180.0, _lines(999_980), [f"histories of {t.name}" for t in TARGETS], id="too few"),
        pytest.param(
            180.0, _lines(1_000_000, without="node"), ["histories of node"], id="a target that was not played"
        ),
        pytest.param(180.0, _lines(1_000_000, "DIFFERS"), ["targets that differ"], id="all differ"),
        pytest.param(180.0, [], [f"histories of {t.name}" for t in TARGETS], id="nothing was said"),
    ],
)
def test_which_runs_of_the_comparison_fail(minutes, told, expected, tmp_path):
    trial = Trial(minutes, random.Random(1), tmp_path, print)
    histories.judge(trial, told)
    assert expected == [figure.name for figure in trial.figures if not figure.met]


ALL_SPACINGS = keep_alive.SPACINGS_S
_UPDATES = ["updates offered", "updates applied"]
_KILLS = ["enforce: kills", "enforce: pods"]
_PLACES = ["plain: connections at once", "plain: places that were taken"]
_AGAIN = ["spacings after which one was used again"]


def _posts(posts: int, used: Sequence[float] = ALL_SPACINGS) -> Callable[[Trial], None]:
    return lambda trial: keep_alive.judge(trial, posts, keep_alive.that_fit(trial.seconds), set(used))


@pytest.mark.parametrize(
    ("minutes", "judge", "expected"),
    [
        pytest.param(1.0, lambda t: updates.judge_rates(t, 9_867, 9_824, 99.4), [], id="R10 as on a quiet machine"),
        pytest.param(0.2, lambda t: updates.judge_rates(t, 9_000, 8_990, 99), _UPDATES, id="R10, slower"),
        pytest.param(1.0, lambda t: updates.judge_rates(t, 9_900, 6_000, 99), _UPDATES[1:], id="R10, not all applied"),
        pytest.param(1.0, lambda t: updates.judge_rates(t, 9_900, 9_900, 70), ["filter calls"], id="R10, few calls"),
        pytest.param(10.0, lambda t: outages.judge_restarts(t, 60, 1_200), [], id="R12, each ten seconds"),
        pytest.param(
            10.0, lambda t: outages.judge_restarts(t, 26, 1_200), ["restarts"], id="R12, less than half of them"
        ),
        pytest.param(10.0, lambda t: outages.judge_restarts(t, 60, 1_199), ["pods"], id="R12, too few pods"),
        pytest.param(1.0, lambda t: outages.judge_restarts(t, 6, 120), [], id="R12, a tenth in a tenth of the time"),
        pytest.param(1.0, lambda t: outages.judge_restarts(t, 5, 120), ["restarts"], id="R12, less than a tenth"),
        pytest.param(60.0, lambda t: fuzz.judge_requests(t, 1_000_000), [], id="R17, a million"),
        pytest.param(60.0, lambda t: fuzz.judge_requests(t, 999_999), ["requests"], id="R17, less than a million"),
        pytest.param(90.0, lambda t: fuzz.judge_requests(t, 1_000_000), [], id="R17, more time asks for no more"),
        pytest.param(1.5, lambda t: fuzz.judge_requests(t, 71_395), [], id="R17, a part of it"),
        pytest.param(5.0, lambda t: slow_clients.judge_places(t, "plain", 128), [], id="R19, all places"),
        pytest.param(
            5.0, lambda t: slow_clients.judge_places(t, "plain", 132), _PLACES[:1], id="R19, more than there are"
        ),
        pytest.param(5.0, lambda t: slow_clients.judge_places(t, "plain", 115), _PLACES[1:], id="R19, no crowd"),
        pytest.param(20.0, lambda t: restarts.judge_kills(t, "enforce", 120, 12_000), [], id="R26, all of it"),
        pytest.param(40.0, lambda t: restarts.judge_kills(t, "enforce", 120, 12_000), [], id="R26, more time, no more"),
        pytest.param(20.0, lambda t: restarts.judge_kills(t, "enforce", 119, 11_399), _KILLS, id="R26, less of both"),
        pytest.param(1.5, lambda t: restarts.judge_kills(t, "enforce", 9, 900), [], id="R26, a part of it"),
        pytest.param(1.5, lambda t: restarts.judge_kills(t, "enforce", 7, 1_025), _KILLS[:1], id="R26, slow starts"),
        pytest.param(5.0, lambda t: restarts.judge_restarts(t, 10, 41_320), [], id="R27, each half minute"),
        pytest.param(5.0, lambda t: restarts.judge_restarts(t, 9, 41_320), ["restarts"], id="R27, one less"),
        pytest.param(5.0, lambda t: restarts.judge_restarts(t, 10, 23_999), ["calls"], id="R27, too few calls"),
        pytest.param(2.0, lambda t: restarts.judge_restarts(t, 4, 9_600), [], id="R27, a part of it"),
        pytest.param(5.0, _posts(20_140), [], id="R29, all of it"),
        pytest.param(5.0, _posts(9_999), ["POSTs"], id="R29, too few"),
        pytest.param(5.0, _posts(20_000, ALL_SPACINGS[:-1]), _AGAIN, id="R29, never after the longest"),
        pytest.param(1.0, _posts(2_000, [s for s in ALL_SPACINGS if s < 36]), [], id="R29, what fits in a minute"),
        pytest.param(5.0, lambda t: agent_kills.judge_kills(t, 145), [], id="R40, more than a hundred"),
        pytest.param(5.0, lambda t: agent_kills.judge_kills(t, 99), ["kills"], id="R40, less than a hundred"),
        pytest.param(6.0, lambda t: attacks.judge_pods(t, 3_420), [], id="R46, ten pods a second"),
        pytest.param(6.0, lambda t: attacks.judge_pods(t, 3_419), ["pods"], id="R46, too few pods"),
        pytest.param(1.0, lambda t: attacks.judge_pods(t, 570), [], id="R46, a part of it"),
    ],
)
def test_a_row_fails_that_has_played_less_than_its_target(minutes, judge, expected, tmp_path):
    trial = Trial(minutes, random.Random(1), tmp_path, print)
    judge(trial)
    assert expected == [figure.name for figure in trial.figures if not figure.met]
