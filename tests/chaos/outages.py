"""R12: the API server goes and comes back, and etcd forgets; the extender must know what is new soon after."""

import time

from tests.plane.cluster import WITHOUT_CONTROLLERS, Cluster
from tests.plane.load import ask, told_after
from tests.soak.rows import Progress, Trial
from tests.testbed.plane.plane import Plane

MINUTES = 10.0
EVERY_S = 10.0
FRESH_WITHIN_S = 3.0


def hold(trial: Trial) -> None:
    with (
        Plane("chaos-outages", without_controllers=WITHOUT_CONTROLLERS, progress=trial.say) as plane,
        Cluster(plane) as cluster,
    ):
        stays, turns = nodes = cluster.add_nodes(2)
        cluster.add_health_pods(nodes, ready=True)
        extender = cluster.start_extender()
        is_open = True
        told: list[float] = []
        wrong = 0
        progress = Progress(trial.say)
        ends = time.monotonic() + trial.seconds
        while time.monotonic() < ends or not told:
            began = time.monotonic()
            plane.stop_api_server()
            plane.compact_etcd()
            wrong += ask(extender.port, nodes).get("NodeNames") != ([stays, turns] if is_open else [stays])
            plane.start_api_server()
            is_open = not is_open
            cluster.health_pods[turns].say(ready=is_open)
            told.append(told_after(extender.port, turns, is_open=is_open, timeout_s=60.0))
            progress(f"{len(told)} restarts, slowest {max(told):.1f} s")
            time.sleep(max(0.0, EVERY_S - (time.monotonic() - began)))
        judge_restarts(trial, len(told))
        trial.at_most(0, "answers during an outage that were not the last ones", wrong, "")
        trial.at_most(FRESH_WITHIN_S, "a change is told after the return, slowest", max(told), "s")


def judge_restarts(trial: Trial, restarts: int) -> None:
    """Whether there were as many as the row is about: 60 in its ten minutes."""
    trial.played(MINUTES * 60 / EVERY_S, MINUTES, "restarts", restarts, "")
