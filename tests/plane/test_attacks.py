"""The attacks of `make chaos` for some seconds each: kube-scheduler places every pod, none of them on a closed node.

In the gate in mode enforce, where a call that takes too long costs time and nothing else. The whole proof counts the
calls of mode protect that failed, and how many pods keep kube-scheduler's pace. `make chaos` asserts p99, too.
"""

from collections.abc import Iterator

import pytest

from tests.plane.cluster import Cluster
from tools.chaos import attackers
from tools.chaos.attacks import MODES, Target
from tools.kit.scope import WHOLE, draws
from tools.testbed.plane.plane import Plane

SECONDS = draws(gate=3, whole=10)
PATIENCE_S = 120.0  # for the last pods, while the attack goes on
IN_TIME = 0.8  # without an attack it is all of them; when the attacks were found, at most one in ten


@pytest.fixture(scope="module")
def target(_bare_plane: Plane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with Cluster(_bare_plane) as cluster, Target(cluster, tmp_path_factory.mktemp("attacks")) as target:
        yield target


@pytest.fixture(scope="module", params=MODES)
def mode(target: Target, request: pytest.FixtureRequest) -> str:
    """kube-scheduler asks the extender in it."""
    mode: str = request.param
    target.ask_in(mode)
    return mode


@pytest.mark.parametrize("attack", attackers.ATTACKS, ids=lambda attack: attack.__name__)
def test_kube_scheduler_places_each_pod_by_the_extender_under_attack(
    target: Target, mode: str, attack: attackers.Attack
) -> None:
    outcome = target.under(attack, SECONDS, patience_s=PATIENCE_S)
    print(f"{mode}: {outcome}")
    assert (0, 0, 0) == (outcome.never, outcome.unfiltered, outcome.killed)
    assert outcome.made > 0, "pods came"
    if WHOLE:
        assert outcome.in_time >= IN_TIME * outcome.made, "kube-scheduler keeps the pace of the pods"
