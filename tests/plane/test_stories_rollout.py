"""A broken image of the health pods is rolled out on many nodes, by the real DaemonSet controller: in each form in
which it may fail, no more nodes are closed than the cap allows, and pods still come.

All times are a fifth of what they are by default, but that a pod of the image answers after a second.
"""

from collections.abc import Callable, Iterator

import pytest

from kube import contract
from tests.plane.cluster import Cluster
from tests.plane.load import Load, ask
from tests.plane.rollout import GOOD, Image, Kubelets, available, install, roll_out
from tests.playbooks.rendering import objects
from tools.kit.scope import draws
from tools.kit.waiting import wait_for
from tools.testbed.plane.plane import Plane

MANY = draws(gate=30, whole=100)
BATCH = MANY // 10  # that may be unavailable at once
FASTER = 5
CAP = 3 * BATCH
NOT_YET_S = 600  # more than a test takes
# So much less than minReadySeconds that a busy machine, which plays the kubelets, does not make it as long.
LATE = Image("registry.invalid/fails-late:2", 20 / FASTER)
NEVER = Image("registry.invalid/never-ready:2", 0)
EARLY = Image("registry.invalid/fails-early:2", 5 / FASTER)
BRAKES = {
    "cap": {"newNodeSeconds": 600 / FASTER},
    "storm": {"withinSeconds": 60 / FASTER, "calmSeconds": 60 / FASTER},
    "gates": [
        {
            "missingGraceSeconds": 30 / FASTER,
            "replaceGraceSeconds": 60 / FASTER,
            "damping": {"minHealthySeconds": 10 / FASTER, "ceilingSeconds": 300 / FASTER, "windowSeconds": 600},
        }
    ],
}


@pytest.fixture
def cluster(plane: Plane) -> Iterator[Cluster]:
    """kube-scheduler asks nobody at first: an extender of an earlier test is no more."""
    plane.restart_scheduler()
    with Cluster(plane) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def deployed() -> dict[str, object]:
    """Of the DaemonSet's spec as the playbooks render it, what paces a roll-out."""
    sent = objects("readygate_agent", {})["DaemonSet", contract.NAMESPACE, contract.NAME_AGENT]["spec"]
    assert 60 == sent["minReadySeconds"]
    return {"updateStrategy": sent["updateStrategy"], "minReadySeconds": 60 // FASTER}


@pytest.mark.parametrize(
    ("image", "min_ready", "settled", "at_most"),
    [
        pytest.param(NEVER, True, True, BATCH, id="never Ready"),
        pytest.param(EARLY, True, True, BATCH, id="Ready for 5 s"),
        pytest.param(LATE, True, True, BATCH, id="Ready for 20 s"),
        pytest.param(LATE, False, True, CAP, id="Ready for 20 s, without minReadySeconds"),
        pytest.param(NEVER, True, False, CAP, id="never Ready, before the old one has been Ready for minReadySeconds"),
    ],
)
def test_a_broken_image_closes_no_more_nodes_than_the_cap_however_it_fails(
    cluster: Cluster,
    say: Callable[[str], None],
    deployed: dict[str, object],
    image: Image,
    min_ready: bool,
    settled: bool,
    at_most: int,
):
    """settled: all pods of the good image count as available, so maxUnavailable bounds the roll-out; what is not
    available yet the controller replaces at once, however many they are."""
    nodes = cluster.add_nodes(MANY, pods="500", cpu="64")
    cluster.plane.wait_namespace(contract.NAMESPACE)
    spec = deployed if min_ready else deployed | {"minReadySeconds": 0}
    if not settled:  # however long it takes until the roll-out begins
        spec = spec | {"minReadySeconds": NOT_YET_S}
    cluster._exit.callback(install(cluster.api, spec))
    with Kubelets(cluster.api, (GOOD, image)) as kubelets:
        assert wait_for(lambda: kubelets.ready() == MANY, timeout_s=180), f"{kubelets.ready()} {kubelets.error}"
        extender = cluster.start_extender(**BRAKES)
        cluster.use_extender(extender.url, mode="enforce")
        assert not settled or wait_for(lambda: available(cluster.api) == MANY, timeout_s=180)
        with Load(cluster.api, per_s=5) as load:
            roll_out(cluster.api, image)
            seen = watched(lambda: len(closed(extender.port, nodes)), for_s=(60 + 30) / FASTER + 3)
            load.stop()
            load.wait_all_bound(timeout_s=120)
        assert kubelets.error is None
        replaced = kubelets.of(image)
    stormed = "storm began" in extender.process.text()
    say(
        f"{image.name}{'' if min_ready else ' without minReadySeconds'}{'' if settled else ' at once'}: {replaced} of "
        f"{MANY} nodes got it, at most {max(seen)} closed, {seen[-1]} at the end, storm: {stormed}; {len(load.made)} "
        f"pods, all bound"
    )
    assert max(seen) <= at_most
    if min_ready and settled:
        assert (replaced, stormed) == (BATCH, False)
    else:
        assert replaced > BATCH
        # One after another they turn at times that a busy machine spreads: then no storm begins.
        assert stormed or settled


def closed(port: int, nodes: list[str]) -> list[str]:
    answer = ask(port, nodes)
    assert not answer.get("Error", "no answer")
    return list(answer["FailedAndUnresolvableNodes"])  # type: ignore[call-overload]


def watched(look: Callable[[], int], *, for_s: float) -> list[int]:
    """All that `look` has said in that time."""
    found: list[int] = []
    wait_for(lambda: found.append(look()), timeout_s=for_s, every_s=0.2)
    return found
