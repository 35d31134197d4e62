"""The crash-loop back-off: 10 s doubling to 300 s, forgotten after a run of more than ten minutes."""

import pytest

from agent.kubelet.pods.backoff import NETWORK_RETRY_S, RESYNC_S, RestartBackoff, jittered_s, retry_s

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


@pytest.mark.parametrize(
    ("period_s", "random", "expected_s"),
    [
        pytest.param(RESYNC_S, 0.0, 60.0, id="PW18 after a sync without error in a minute at the earliest"),
        pytest.param(RESYNC_S, 1.0, 90.0, id="PW18 and in a minute and a half at the latest"),
        pytest.param(NETWORK_RETRY_S, 0.5, 1.25, id="PW18 a network that is not ready is looked at again soon"),
    ],
)
def test_pw18_waits_are_longer_by_up_to_half(period_s: float, random: float, expected_s: float) -> None:
    assert expected_s == jittered_s(period_s, lambda: random)


@pytest.mark.parametrize(
    ("backoffs_s", "random", "expected_s"),
    [
        pytest.param([], 0.0, 10.0, id="ten seconds"),
        pytest.param([], 1.0, 15.0, id="up to half of it longer"),
        pytest.param([4.0], 0.0, 4.0, id="what is left of a back-off"),
        pytest.param([4.0], 1.0, 6.0, id="which is made longer, too"),
        pytest.param([40.0, 3.0, 20.0], 0.0, 3.0, id="the shortest of several"),
        pytest.param([40.0], 0.0, 40.0, id="longer than ten seconds"),
        pytest.param([300.0], 0.0, 60.0, id="never longer than the resync"),
        pytest.param([300.0], 1.0, 90.0, id="but for its jitter"),
        pytest.param([-5.0], 1.0, 0.0, id="at once where it is over"),
    ],
)
def test_pw19_a_pod_that_failed_is_synced_again(backoffs_s: list[float], random: float, expected_s: float) -> None:
    """The cases of TestCompleteWork of pkg/kubelet/pod_workers_test.go, v1.36.3."""
    assert expected_s == retry_s(backoffs_s, lambda: random)
