"""So many at once, then one in so many seconds."""

from agent.processes.rate_limit import RateLimit


def test_a_burst_then_one_every_ten_seconds() -> None:
    ration = RateLimit(burst=3, every_s=10.0)
    given = [second for second in range(60) if ration.take(float(second))]
    assert given == [0, 1, 2, 10, 20, 30, 40, 50]


def test_after_a_calm_there_is_a_burst_again() -> None:
    ration = RateLimit(burst=2, every_s=10.0)
    assert [ration.take(0.0), ration.take(0.0), ration.take(0.0), ration.take(1000.0), ration.take(1000.0)] == [
        True,
        True,
        False,
        True,
        True,
    ]


def test_how_long_to_wait_and_how_many_were_left_out() -> None:
    ration = RateLimit(burst=1, every_s=10.0)
    assert (0.0, True) == (ration.wait_s(5.0), ration.take(5.0))
    assert [False, False] == [ration.take(6.0), ration.take(7.0)]
    assert 7.0 == ration.wait_s(8.0)
    assert (True, 2) == (ration.take(15.0), ration.left_out)


def test_what_does_not_ask_makes_the_others_wait() -> None:
    ration = RateLimit(burst=2, every_s=10.0)
    for _ in range(3):
        ration.spend(0.0)
    assert (20.0, 30.0) == (ration.wait_s(0.0), ration.wait_s(0.0, left=1))
    assert (0.0, 10.0) == (ration.wait_s(20.0), ration.wait_s(20.0, left=1))
