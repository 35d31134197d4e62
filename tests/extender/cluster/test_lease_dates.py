"""How old a Lease is by the Date of the answer that it came with, where no other one tells."""

import pytest

from extender.cluster.lease_age import LeaseAges
from kube.times import parse_time
from tests.extender.cluster.test_lease_age import at, renewal


@pytest.mark.parametrize(
    ("written", "date", "lost_at"),
    [
        pytest.param(at(0, 0), at(0, 5), 120.0, id="four seconds old, as nothing says which part of a second"),
        pytest.param(at(0, 0), at(9, 0), 112.5, id="nine minutes old: it has the time to return"),
        pytest.param(at(9, 0), at(0, 0), 124.0, id="in the future: a clock is wrong, so it counts as new"),
        pytest.param("", at(9, 0), 124.0, id="nobody says when it was written"),
        pytest.param(at(0, 0), None, 124.0, id="the answer has no Date"),
    ],
)
def test_the_first_list_tells_how_old_the_only_lease_is_by_the_date_of_the_answer(written, date, lost_at):
    known = LeaseAges(24.0)
    leases = [renewal("a", written=written)]
    known.replace(leases, 100.0, ahead_s=None if date is None else parse_time(date) - 100.0)
    found = {}
    for monotonic in (105.0, 112.0, lost_at - 0.1, lost_at):
        known.read(leases, monotonic, monotonic)
        found[monotonic] = known.lost(monotonic)
    assert {105.0: set(), 112.0: set(), lost_at - 0.1: set(), lost_at: {"a"}} == found


def test_a_date_that_is_wrong_gives_a_long_lease_the_time_in_which_it_moves():
    known, leases = LeaseAges(24.0), [renewal("a", duration_s=400.0, written=at(0, 0))]
    known.replace(leases, 100.0, ahead_s=parse_time(at(59, 0)) - 100.0)
    for monotonic in range(105, 225, 5):
        known.read(leases, monotonic, monotonic)
        assert set() == known.lost(monotonic), "it moves each hundred seconds"
    known.read(leases, 225.0, 225.0)
    assert {"a"} == known.lost(225.0)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param([], set(), id="alone it is open until one of them has looked for 12.5 s"),
        pytest.param([renewal("b", written=at(9, 0))], {"a"}, id="beside one that lives it is lost at once, each time"),
    ],
)
def test_extenders_that_start_again_every_ten_seconds(others, expected):
    """Each begins anew: that the API server answers now says nothing of the time in which nobody saw whether
    a kubelet could write. So the only Lease of a cluster, dead for minutes, is given its time to return by each."""
    for started in (100.0, 110.0, 120.0):
        known = LeaseAges(24.0)
        leases = [renewal("a", written=at(0, 0)), *others]
        known.replace(leases, started, ahead_s=parse_time(at(9, 0)) - started)
        for monotonic in (started + 2.0, started + 9.9):
            known.read(leases, monotonic, monotonic)
            assert expected == known.lost(monotonic)
