"""The crash-loop back-off: 10 s doubling to 300 s, forgotten after a run of more than ten minutes."""

import pytest

from agent.pods.backoff import RestartBackoff

KEY = ("uid", "c")


def crash(backoff: RestartBackoff, run_s: float, times: int, limit_s: float) -> list[float]:
    """A container that runs `run_s` and ends, `times` times; how long each restart had to wait."""
    now, waits = 1000.0, []
    for _ in range(times):
        ended = now + run_s
        wait = backoff.remaining_s(KEY, ended, ended)
        waits.append(wait)
        now = ended + wait
        backoff.restarted(KEY, ended, now, limit_s=limit_s)
    return waits


@pytest.mark.parametrize(
    ("run_s", "limit_s", "expected"),
    [
        pytest.param(0, 300, [0, 10, 20, 40, 80, 160, 300, 300], id="BO1 ends at once"),
        pytest.param(590, 300, [0, 10, 20, 40, 80, 160, 300, 300], id="BO1 runs for less than ten minutes"),
        pytest.param(601, 300, [0, 0, 0, 0, 0, 0, 0, 0], id="BO1 runs for more than ten minutes"),
        pytest.param(0, 25, [0, 10, 20, 25, 25, 25, 25, 25], id="BO2 a limit that is no power of two of the first"),
        pytest.param(0, 1, [0, 1, 1, 1, 1, 1, 1, 1], id="BO2 a limit below the first wait is the first wait"),
    ],
)
def test_waits(run_s: float, limit_s: float, expected: list[float]) -> None:
    assert expected == crash(RestartBackoff(), run_s, 8, limit_s)


def test_bo3_what_has_passed_since_the_end_counts() -> None:
    backoff = RestartBackoff()
    backoff.restarted(KEY, 0.0, 0.0, limit_s=300)
    assert [10.0, 4.0, 0.0] == [backoff.remaining_s(KEY, 5.0, now) for now in (5.0, 11.0, 16.0)]


def test_bo3_containers_do_not_share_their_waits() -> None:
    backoff = RestartBackoff()
    backoff.restarted(KEY, 0.0, 0.0, limit_s=300)
    assert backoff.remaining_s(("uid", "other"), 1.0, 1.0) == 0.0
