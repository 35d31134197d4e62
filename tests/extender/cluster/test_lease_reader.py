"""The thread that lists Leases beside their watch: when it asks, and what it makes of no answer."""

import math

import pytest

from extender.cluster.lease_reader import PAUSE_MAX_S, LeaseReader
from kube.errors import Forbidden, Gone, KubeError, TooManyRequests, Unreachable
from kube.listing import Page
from tests.extender.builders import lease
from tools.kit.clock import Clock

LEASES = [lease("n1", "a")]
GONE = Gone(path="/leases", message="the continue parameter is too old")
AWAY = Unreachable(path="/leases", message="away")
FORBIDDEN = Forbidden(path="/leases", message="no")


class Around:
    """An index that wants a list at `due_at`, and a lister that gives `answers` one after the other."""

    def __init__(self, *answers: KubeError | str) -> None:
        self.answers = list(answers)
        self.due_at = 100.0
        self.told: list[object] = []
        self.answered = False
        self.clock = Clock(100.0)
        self.reader = LeaseReader(self, self, monotonic=self.clock, random=lambda: 0.0)

    def page(self, *, limit: int | None, more: str = "") -> Page:
        assert (500, "") == (limit, more)
        self.clock.time += 0.5
        answer = self.answers.pop(0)
        if isinstance(answer, KubeError):
            raise answer
        return Page(LEASES, "7", answer, 0, "Lease")

    def close(self) -> None:
        self.told.append("closed")

    def leases_due_at(self) -> float:
        return self.due_at

    def read_leases(self, leases: list, began: float) -> None:
        assert LEASES == leases
        self.told.append(began)

    def leases_unread(self) -> None:
        self.told.append("unread")

    def answered_since(self) -> bool:
        return self.answered


@pytest.mark.parametrize(
    ("due_at", "expected"),
    [(101.0, 1.0), (110.0, PAUSE_MAX_S), (math.inf, PAUSE_MAX_S)],
    ids=["soon", "later", "not at all"],
)
def test_it_asks_for_nothing_before_it_is_wanted(due_at: float, expected: float) -> None:
    around = Around()
    around.due_at = due_at
    assert (expected, []) == (around.reader.turn(), around.told)


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        pytest.param([""], [100.0], id="a list is as old as its question"),
        pytest.param([AWAY, ""], [100.5], id="a connection that was idle may be gone"),
        pytest.param([AWAY, AWAY], ["unread"], id="twice no answer"),
    ],
)
def test_what_it_tells_the_index(answers: list[KubeError | str], told: list[object]) -> None:
    around = Around(*answers)
    around.reader.turn()
    assert told == around.told


class Pages(Around):
    """Whose list is so many pages; the first of them that is asked for with a token may be `gone`."""

    def __init__(self, pages: int, *, gone: bool = False) -> None:
        super().__init__()
        self.asked: list[tuple[int | None, str]] = []
        self.pages, self.gone = pages, gone

    def page(self, *, limit: int | None, more: str = "") -> Page:
        self.asked.append((limit, more))
        self.clock.time += 0.1
        number = int(more or 0) + 1
        if self.gone and more:
            self.gone = False
            raise GONE
        names = range(1, self.pages + 1) if limit is None else [number]
        last = limit is None or number == self.pages
        leases = [lease(f"n{name}", "a") for name in names]
        return Page(leases, "7", "" if last else str(number), 0, "Lease")

    def read_leases(self, leases: list, began: float) -> None:
        self.told.append(([one.metadata.name for one in leases], round(began - 100.0, 1)))


@pytest.mark.parametrize(
    ("gone", "asked", "began"),
    [
        pytest.param(False, [(500, ""), (500, "1"), (500, "2")], 0.0, id="as old as its first page"),
        pytest.param(
            True, [(500, ""), (500, "1"), (None, "")], 0.2, id="a version that is gone: at once, in one piece"
        ),
    ],
)
def test_a_list_of_several_pages(gone: bool, asked: list[tuple[int | None, str]], began: float) -> None:
    around = Pages(3, gone=gone)
    around.reader.turn()
    assert (asked, [(["n1", "n2", "n3"], began)]) == (around.asked, around.told)


@pytest.mark.parametrize(("pages", "apart_s"), [(1, 0.2), (3, 3.0), (10, 10.0)])
def test_of_a_list_of_several_it_asks_for_one_page_a_second_at_most(pages: int, apart_s: float) -> None:
    """A list is wanted all the time; it is woken each tenth of a second."""
    around = Pages(pages)
    around.due_at = -math.inf
    while len(around.told) < 2:
        around.reader.turn()
        around.clock.time += 0.1
    (_, first), (_, second) = around.told
    assert apart_s == pytest.approx(second - first, abs=0.11)


def asked_at(around: Around, *, until: float) -> list[float]:
    """When it asks; woken each half second all the while."""
    found = []
    while around.clock.time < until:
        before = len(around.answers)
        around.reader.turn()
        if len(around.answers) < before:
            found.append(round(around.clock.time - 0.5 - 100.0, 1))
        around.clock.time += 0.5
    return found


def test_after_a_failure_it_waits_longer_and_longer_however_often_it_is_woken(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    around = Around(*[AWAY] * 7, "", "")
    assert [0.5, 2.0, 4.5, 9.0, 17.5, 34.0, 66.5, 67.5] == asked_at(around, until=168.0)
    assert ["Leases not read", "Leases read again"] == [record.message for record in caplog.records]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(AWAY, [0.5, 2.0, 4.5, 9.0, 14.5, 20.0, 25.5], id="no answer"),
        pytest.param(FORBIDDEN, [0.5, 2.0, 4.5, 9.0, 17.5], id="an answer that stays the same"),
    ],
)
def test_where_the_api_server_is_heard_again_it_asks_soon(error: KubeError, expected: list[float]) -> None:
    around = Around(*[error] * 20)
    around.answered = True
    assert expected == asked_at(around, until=130.0)


def test_it_waits_as_long_as_the_api_server_asks_for() -> None:
    busy = TooManyRequests(path="/leases", message="busy", retry_after_s=30.0)
    around = Around(busy, busy)
    around.reader.turn()
    around.clock.time += 29.9
    around.reader.turn()
    assert ["unread"] == around.told


def test_it_stops_in_the_middle_of_a_question() -> None:
    around = Around()
    around.reader.stop()
    assert ["closed"] == around.told
