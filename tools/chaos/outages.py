"""R12: the API server goes and comes back, and etcd forgets; the extender must know what is new soon after.

Pods come all the time, and each time one waits for the node that has closed: it must be bound when that node opens.
"""

import math
import time
from dataclasses import dataclass, field

from tests.plane.cluster import WITHOUT_CONTROLLERS, Cluster
from tests.plane.load import Load, ask, told_after
from tools.kit.waiting import wait_for
from tools.soak.rows import Progress, Trial
from tools.testbed.plane.plane import Plane

MINUTES = 10.0
EVERY_S = 10.0
FRESH_WITHIN_S = 3.0
PODS_PER_S = 5.0
MADE = 0.4  # of the pods: an API server that is away takes none, and needs some seconds to start
BUDGET_S = 2.0  # a node may have closed so long before a pod is bound there
BOUND_WITHIN_S = 15.0
# kube-scheduler's own watch of the Nodes is refused too while the API server loads its rules, and then rests for up to
# half a minute, and as much again by chance. Without a kick it is five minutes.
WAITS_WITHIN_S = 60.0


@dataclass
class Seen:
    """Seconds. told: by return, until a change was told. waited: by opening, until the pod that waited was bound.
    wrong: answers of an outage that were not the last ones. closed: when the node was so, from and to, monotonic."""

    told: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    wrong: int = 0
    closed: list[tuple[float, float]] = field(default_factory=list)


def hold(trial: Trial) -> None:
    with (
        Plane("chaos-outages", without_controllers=WITHOUT_CONTROLLERS, progress=trial.say) as plane,
        Cluster(plane) as cluster,
    ):
        stays, turns = nodes = cluster.add_nodes(2, pods="20000", cpu="2000")
        cluster.add_health_pods(nodes, ready=True)
        extender = cluster.start_extender()
        cluster.use_extender(extender.url, mode="enforce")
        seen, progress = Seen(), Progress(trial.say)
        with Load(cluster.api, per_s=PODS_PER_S) as load:
            ends = time.monotonic() + trial.seconds
            while time.monotonic() < ends or not seen.told:
                for story in (_closes, _opens):
                    began = time.monotonic()
                    is_open = story is _opens
                    plane.stop_api_server()
                    plane.compact_etcd()
                    seen.wrong += ask(extender.port, nodes, timeout_s=2.0).get("NodeNames") != (
                        [stays] if is_open else nodes
                    )
                    plane.start_api_server()
                    story(cluster, extender.port, turns, seen)
                    said = f"slowest {max(seen.told):.1f} s, {len(load.made)} pods, {len(load.unbound())} not bound"
                    progress(f"{len(seen.told)} restarts, {said}")
                    time.sleep(max(0.0, EVERY_S - (time.monotonic() - began)))
            load.stop()
            began = time.monotonic()
            wait_for(lambda: not load.unbound(), timeout_s=60.0)
            all_bound_s = time.monotonic() - began
            bad = [pod for since, until in seen.closed for pod in load.on([turns], after=since + BUDGET_S, until=until)]
            judge_restarts(trial, len(seen.told), len(load.made))
            twice, unbound = len(load.bound_twice()), len(load.unbound())
        trial.at_most(0, "answers during an outage that were not the last ones", seen.wrong, "")
        trial.at_most(FRESH_WITHIN_S, "a change is told after the return, slowest", max(seen.told), "s")
        trial.at_most(WAITS_WITHIN_S, "the pod that waits is bound after its node opened", max(seen.waited), "s")
        trial.at_most(0, "placed on a node closed for more than 2 s", len(bad), "pods")
        trial.at_most(0, "bound twice", twice, "pods")
        trial.at_most(0, "never bound", unbound, "pods")
        trial.at_most(BOUND_WITHIN_S, "all bound after the last return", all_bound_s, "s")


def _closes(cluster: Cluster, port: int, node: str, seen: Seen) -> None:
    """And a pod waits for it, which nothing wakes but the kick when it opens."""
    cluster.health_pods[node].say(ready=False)
    seen.closed.append((time.monotonic(), math.inf))
    seen.told.append(told_after(port, node, is_open=False, timeout_s=60.0))
    cluster.add_pod(_waiting(seen), node=node)


def _opens(cluster: Cluster, port: int, node: str, seen: Seen) -> None:
    (since, _), opened = seen.closed.pop(), time.monotonic()
    seen.closed.append((since, opened))
    cluster.health_pods[node].say(ready=True)
    seen.told.append(told_after(port, node, is_open=True, timeout_s=60.0))
    bound = cluster.wait_bound(_waiting(seen), timeout_s=WAITS_WITHIN_S)
    seen.waited.append(time.monotonic() - opened if bound else math.inf)


def _waiting(seen: Seen) -> str:
    return f"waits-{len(seen.closed)}"


def judge_restarts(trial: Trial, restarts: int, pods: int) -> None:
    """Whether there were as many as the row is about: 60 in its ten minutes, and pods."""
    trial.played(MINUTES * 60 / EVERY_S, MINUTES, "restarts", restarts, "")
    trial.played(MADE * PODS_PER_S * MINUTES * 60, MINUTES, "pods", pods, "")
