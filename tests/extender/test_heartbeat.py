import pytest

from extender.heartbeat import Heartbeats


def beats(*renewals, limit_s=20.0):
    """Renewals are (node, renewTime, at)."""
    result = Heartbeats(limit_s)
    for node, renew_time, at in renewals:
        result.saw(node, renew_time, 40.0, at)
    return result


@pytest.mark.parametrize(
    ("renewals", "contact", "expected"),
    [
        pytest.param([("a", "1", 0), ("b", "1", 0), ("b", "2", 10), ("b", "3", 20)], 20, set(), id="at the limit"),
        pytest.param([("a", "1", 0), ("b", "1", 0), ("b", "2", 15)], 20.1, {"a"}, id="one stops while another goes on"),
        pytest.param([("a", "1", 0), ("a", "1", 15), ("b", "2", 20)], 21, {"a"}, id="the same renewTime is no beat"),
        pytest.param([("a", "9", 0), ("a", "1", 15), ("b", "2", 20)], 21, set(), id="any change is, also backwards"),
        pytest.param([("a", "1", 0), ("b", "1", 1)], 60, set(), id="none moves: the fault is not the nodes'"),
        pytest.param([("a", "1", 0), ("b", "1", 5)], 5, set(), id="a silent watch ages nobody"),
        pytest.param([], 100, set(), id="no Lease at all"),
    ],
)
def test_lost(renewals, contact, expected):
    assert expected == beats(*renewals).lost(contact)


def test_off():
    assert set() == beats(("a", "1", 0), ("b", "2", 99), limit_s=0).lost(100)


def test_a_list_gives_all_a_fresh_grace():
    known = beats(("a", "1", 0), ("b", "1", 15))
    known.replace([("a", "1", 40.0), ("b", "1", 40.0)], 19)
    known.saw("b", "2", 40.0, 35)
    assert set() == known.lost(39)
    assert {"a"} == known.lost(39.1)


def test_a_list_is_no_sign_of_life_of_a_lost_node():
    known = beats(("a", "1", 0), ("c", "1", 0), ("b", "1", 15))
    assert {"a", "c"} == known.lost(21)
    known.replace([("a", "1", 40.0), ("b", "1", 40.0), ("c", "2", 40.0)], 22)
    assert {"a"} == known.lost(22)


def test_a_long_lease_has_a_longer_limit():
    known = Heartbeats(20.0)
    known.saw("slow", "1", 400.0, 0)
    known.saw("fast", "1", 40.0, 99)
    assert set() == known.lost(100)
    known.saw("fast", "2", 40.0, 150)
    assert {"slow"} == known.lost(151)


def test_age():
    known = beats(("a", "1", 5))
    assert (known.age_s("a", 8), known.age_s("a", 4), known.age_s("b", 8)) == (3.0, 0.0, None)
    known.forget("a")
    assert known.age_s("a", 8) is None
