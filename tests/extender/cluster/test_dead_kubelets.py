"""How soon a dead kubelet closes its node, and that a living one never does: simulated hours, no second waited."""

import pytest

from extender.cluster.lease_age import RETURN_S
from tests.extender.cluster.kubelets import Away, Cluster, kubelets
from tools.kit.scope import WHOLE

START = 60.0  # by then all have renewed


def started(cluster: Cluster) -> Cluster:
    cluster.run(START)
    assert [] == cluster.closings
    return cluster


@pytest.mark.parametrize("phase", range(0, 10, 2))
@pytest.mark.parametrize("nodes", [1, 2, 3, 10])
def test_a_dead_kubelet_closes_its_node_25_s_after_its_last_renewal(nodes: int, phase: int) -> None:
    cluster = started(Cluster(kubelets(nodes, dies={0: 120.0 + phase}, seed=phase), controller=False, seed=phase))
    cluster.run(600.0)
    [(closed_at, name)] = cluster.closings
    assert "n0" == name
    assert 23.9 < closed_at - cluster.kubelets[0].written <= 25.0
    assert [] == cluster.openings


def test_a_dead_kubelet_among_5000_closes_its_node_25_s_after_its_last_renewal() -> None:
    cluster = started(Cluster(kubelets(5000, dies={0: 80.0}), controller=False))
    cluster.run(150.0)
    [(closed_at, name)] = cluster.closings
    assert ("n0", 0) == (name, cluster.reads)
    assert 23.9 < closed_at - cluster.kubelets[0].written <= 25.0


@pytest.mark.parametrize("nodes", [1, 2, 3, 20])
def test_who_lives_is_never_closed(nodes: int) -> None:
    cluster = started(Cluster(kubelets(nodes)))
    cluster.run(2 * 3600.0)
    assert ([], 0) == (cluster.closings, cluster.reads)


@pytest.mark.parametrize("away_s", [9, 12, 14, 30, 120, 600] if WHOLE else [12, 30, 600])
@pytest.mark.parametrize("hangs", [False, True], ids=["refuses", "hangs"])
@pytest.mark.parametrize("nodes", [1, 2, 3, 30])
def test_an_api_server_that_was_away_closes_nobody(nodes: int, hangs: bool, away_s: float) -> None:
    """Ten times, each at another moment of the kubelets' interval."""
    away = [Away(at, at + away_s, hangs) for at in (100.0 + k * (away_s + 61.3) for k in range(10))]
    cluster = started(Cluster(kubelets(nodes), away, controller=False, seed=nodes))
    cluster.run(away[-1].end + 60.0)
    assert [] == cluster.closings


@pytest.mark.parametrize("away_s", [30, 600])
@pytest.mark.parametrize("nodes", [1, 2, 10])
def test_who_dies_while_the_api_server_is_away_is_closed_soon_after(nodes: int, away_s: float) -> None:
    cluster = started(Cluster(kubelets(nodes, dies={0: 101.0}), [Away(100.0, 100.0 + away_s)], controller=False))
    cluster.run(100.0 + away_s + 60.0)
    [(closed_at, name)] = cluster.closings
    assert "n0" == name
    assert closed_at <= 100.0 + away_s + 25.0


@pytest.mark.parametrize("stopped_s", [8, 12, 13, 30, 300] if WHOLE else [12, 30, 300])
@pytest.mark.parametrize("nodes", [1, 2, 3, 30])
def test_an_extender_that_was_suspended_closes_nobody(nodes: int, stopped_s: float) -> None:
    """What came meanwhile waits to be read, and its threads go on in any order."""
    suspended = [(at, at + stopped_s) for at in (100.0 + k * (stopped_s + 31.7) for k in range(10))]
    cluster = started(Cluster(kubelets(nodes), suspended=suspended, controller=False))
    cluster.run(suspended[-1][1] + 60.0)
    assert [] == cluster.closings


@pytest.mark.parametrize("each_s", [10, 20])
@pytest.mark.parametrize("nodes", [1, 2, 3, 100, 501])
@pytest.mark.parametrize("phase", range(0, 20, 3 if WHOLE else 9))
def test_lists_in_the_place_of_a_watch_keep_no_dead_kubelet_open(phase: int, nodes: int, each_s: float) -> None:
    cluster = started(
        Cluster(
            kubelets(nodes, dies={0: 101.0 + phase}, seed=phase),
            watch_broken=(100.0, 700.0, each_s),
            controller=False,
        )
    )
    cluster.run(180.0)
    [(closed_at, name)] = cluster.closings
    assert "n0" == name
    assert 23.9 < closed_at - cluster.kubelets[0].written <= 25.0


@pytest.mark.parametrize("step_s", [-18.0, -15.0, -9.0, -5.0, 9.0])
@pytest.mark.parametrize("nodes", [1, 3])
def test_lists_in_the_place_of_a_watch_close_nobody_whose_clock_is_set(nodes: int, step_s: float) -> None:
    """Once, at any moment between two lists."""
    for at in range(120, 140, 3):
        cluster = Cluster(kubelets(nodes, seed=at), watch_broken=(100.0, 300.0, 20.0), controller=False, seed=at)
        cluster.run(float(at))
        cluster.kubelets[0].skew_s = step_s
        cluster.run(280.0)
        assert [] == cluster.closings


@pytest.mark.parametrize("each_s", [10, 20])
def test_lists_of_5000_in_the_place_of_a_watch_keep_no_dead_kubelet_open(each_s: float) -> None:
    """They are read in between, in pages."""
    cluster = started(Cluster(kubelets(5000, dies={0: 106.0}), watch_broken=(100.0, 700.0, each_s), controller=False))
    cluster.run(140.0)
    [(closed_at, name)] = cluster.closings
    assert "n0" == name
    assert 23.9 < closed_at - cluster.kubelets[0].written <= 25.0


def test_reading_many_beside_a_broken_watch_closes_nobody_who_lives() -> None:
    """And the API server is away in the midst of it, twice."""
    away = [Away(200.0, 214.0), Away(300.0, 330.0, hangs=True)]
    cluster = started(Cluster(kubelets(1200), away, watch_broken=(100.0, 500.0, 20.0), controller=False))
    cluster.run(500.0)
    assert [] == cluster.closings


PART = [
    pytest.param(10, 2, 24.9, id="two of ten are dead"),
    pytest.param(10, 3, 61.0, id="three of ten may have lost their API server: when the controller says so"),
    pytest.param(2, 2, 61.0, id="both of two"),
    pytest.param(3, 2, 24.9, id="two of three"),
    pytest.param(100, 20, 24.9, id="a fifth"),
    pytest.param(100, 21, 61.0, id="more than a fifth"),
    pytest.param(100, 100, 61.0, id="all"),
]


@pytest.mark.parametrize(("nodes", "cut", "within_s"), PART)
def test_many_at_once_need_a_second_signal(nodes: int, cut: int, within_s: float) -> None:
    names = frozenset(f"n{i}" for i in range(cut))
    cluster = started(Cluster(kubelets(nodes), [Away(100.0, 10_000.0, of=names)]))
    cluster.run(300.0)
    assert names == {name for _, name in cluster.closings}
    assert [] == cluster.openings
    written = {one.name: one.written for one in cluster.kubelets}
    waited = [closed_at - written[name] for closed_at, name in cluster.closings]
    assert 23.9 < min(waited) <= max(waited) <= within_s
    assert (within_s > 25.0) == (min(waited) > 49.0)


@pytest.mark.parametrize("cut_s", [13, 15, 18, 24, 40] if WHOLE else [15, 40])
@pytest.mark.parametrize(("nodes", "cut"), [(2, 2), (10, 4), (30, 15), (30, 30)])
def test_many_that_come_back_were_never_closed(nodes: int, cut: int, cut_s: float) -> None:
    """A load balancer is away for some of them, ten times; our own view stays whole."""
    names = frozenset(f"n{i}" for i in range(cut))
    away = [Away(at, at + cut_s, of=names) for at in (100.0 + k * (cut_s + 61.3) for k in range(10))]
    cluster = started(Cluster(kubelets(nodes), away, controller=False))
    cluster.run(away[-1].end + 60.0)
    assert [] == cluster.closings


# An extender that starts anew.


@pytest.mark.parametrize("skew_s", [0.0, -86_400.0, 86_400.0, 30.0])
@pytest.mark.parametrize("nodes", [1, 2, 3, 30])
def test_a_start_closes_nobody_who_lives_whatever_the_clock_of_a_node(nodes: int, skew_s: float) -> None:
    cluster = Cluster(kubelets(nodes), controller=False)
    cluster.kubelets[0].skew_s = skew_s
    started(cluster)
    for at in range(100, 400, 31):
        cluster.run(at)
        cluster.start_extender()
    assert [] == cluster.closings


@pytest.mark.parametrize("dead_s", [36, 45, 600])
@pytest.mark.parametrize("nodes", [2, 3, 30])
def test_a_start_closes_at_once_who_was_dead_before(nodes: int, dead_s: float) -> None:
    cluster = started(Cluster(kubelets(nodes, dies={0: 110.0}), controller=False))
    cluster.run(100.0 + dead_s)
    cluster.closings.clear()
    cluster.start_extender()
    cluster.run(100.0 + dead_s + 0.1)
    assert [(100.0 + dead_s, "n0")] == cluster.closings


@pytest.mark.parametrize("dead_s", [36, 45, 600])
@pytest.mark.parametrize("nodes", [1, 2, 10])
def test_where_all_are_dead_a_start_gives_nobody_more_than_the_time_to_return(nodes: int, dead_s: float) -> None:
    """There is no living one to compare with; the API server's own clock tells. Two and more need their controller."""
    cluster = started(Cluster(kubelets(nodes, dies=dict.fromkeys(range(nodes), 110.0)), controller=False))
    cluster.run(100.0 + dead_s)
    cluster.closings.clear()
    cluster.start_extender()
    cluster.run(100.0 + dead_s + RETURN_S + 0.5)
    assert (["n0"] if nodes == 1 else []) == [name for _, name in cluster.closings]


def test_an_extender_that_starts_again_each_thirteen_seconds_closes_the_only_node_once_it_is_dead() -> None:
    cluster = started(Cluster(kubelets(1, dies={0: 110.0}), controller=False))
    cluster.run(120.0)
    for at in range(121, 160, 13):
        cluster.start_extender()
        cluster.run(at)
    assert {"n0"} == {name for _, name in cluster.closings}


@pytest.mark.parametrize("date_skew_s", [-600.0, -3.0, 3.0, 600.0])
@pytest.mark.parametrize("nodes", [1, 2, 3, 30])
def test_a_start_closes_nobody_who_lives_whatever_the_clock_of_a_proxy(nodes: int, date_skew_s: float) -> None:
    cluster = started(Cluster(kubelets(nodes), date_skew_s=date_skew_s, controller=False))
    for at in range(100, 400, 31):
        cluster.run(at)
        cluster.start_extender()
    assert [] == cluster.closings


@pytest.mark.parametrize("after_s", [0.5, 2, 4, 6, 8])
def test_a_start_soon_after_the_api_server_has_come_back_does_not_close_the_only_node(after_s: float) -> None:
    """Its Lease is old, as it could not be written."""
    cluster = started(Cluster(kubelets(1), [Away(100.0, 400.0)], controller=False))
    cluster.run(400.0 + after_s)
    cluster.start_extender()
    cluster.run(500.0)
    assert [] == cluster.closings


@pytest.mark.parametrize("after_s", [0.5, 2, 4, 6, 8])
@pytest.mark.parametrize("nodes", [2, 3, 30])
def test_a_start_together_with_the_api_server_closes_nobody(nodes: int, after_s: float) -> None:
    """Both on a control plane that was booted: some kubelets are back, some are not yet."""
    cluster = started(Cluster(kubelets(nodes), [Away(100.0, 400.0)], controller=False))
    cluster.run(400.0 + after_s)
    cluster.start_extender(after_failures=True)
    cluster.run(500.0)
    assert [] == cluster.closings
