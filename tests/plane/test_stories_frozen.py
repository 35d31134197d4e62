"""The extender is frozen under load and goes on: what kube-scheduler does meanwhile, and the first answers after.

While it is frozen the API server's words pile up before it; a node that closed meanwhile must not pass afterwards.
"""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.plane.cluster import LIMIT_S, Cluster
from tests.plane.load import Load, ask
from tools.kit.pid import children
from tools.kit.scope import WHOLE
from tools.kit.waiting import wait_for

FROZEN_S = 8.0
SCHEDULER_TIMEOUT_S = 1.0


@pytest.mark.parametrize("mode", ["protect", "enforce"])
def test_a_frozen_extender_costs_a_second_a_pod_and_wakes_up_with_the_truth(cluster: Cluster, mode: str):
    stays, closes, closed = nodes = cluster.add_nodes(3, pods="500", cpu="64")
    cluster.add_health_pods([stays, closes], ready=True)
    cluster.add_health_pods([closed], ready=False)
    extender = cluster.start_extender()
    cluster.use_extender(extender.url, mode=mode)
    with Load(cluster.api, per_s=15) as load:
        assert wait_for(lambda: load.bound, timeout_s=LIMIT_S)
        frozen = _signal(extender.process.pid, signal.SIGSTOP)
        try:
            assert wait_for(lambda: all(map(_stopped, frozen)), timeout_s=LIMIT_S)
            frozen_at = time.monotonic()
            time.sleep(FROZEN_S / 2)
            cluster.health_pods[closes].say(ready=False)
            time.sleep(FROZEN_S / 2)
        finally:
            thawed_at = time.monotonic()
            _signal(extender.process.pid, signal.SIGCONT)
        resumed_at = time.monotonic()
        first = next(answer for _ in range(200) if (answer := ask(extender.port, nodes)))
        answered_s = time.monotonic() - resumed_at
        bound_while_frozen = load.on(nodes, begun_after=frozen_at, until=thawed_at)
        load.stop()
        all_bound_s = load.wait_all_bound(timeout_s=2 * LIMIT_S)
        print(
            f"{mode}: {len(load.made)} pods, {len(bound_while_frozen)} bound in {FROZEN_S:.0f} s frozen; first answer "
            f"{answered_s:.2f} s after, all bound after {all_bound_s:.1f} s"
        )
        assert [stays] == first["NodeNames"], "the first answer is no stale one"
        if mode == "enforce":
            assert bound_while_frozen == []
            assert [] == load.on([closed]), "nothing unfiltered, ever"
        else:
            assert 1 <= len(bound_while_frozen) <= FROZEN_S / SCHEDULER_TIMEOUT_S + 2
        if mode == "enforce" or WHOLE:  # on a busy machine calls fail after it, too, and mode protect goes on without
            assert [] == load.on([closes, closed], begun_after=resumed_at)


def _signal(pid: int | None, number: int) -> list[int]:
    """To the master and its worker. Returns their ids."""
    assert pid is not None
    found = [pid, *children(pid)]
    for one in found:
        os.kill(one, number)
    return found


def _stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
