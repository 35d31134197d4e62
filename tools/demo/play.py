"""The story, step by step. Each step does one thing and waits until the API server shows what came of it."""

import itertools
import time
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from extender.policy import reasons
from tools.demo.narrator import Narrator
from tools.demo.observed import Observed, spread
from tools.demo.stage import CHECK_FAILURES, CHECK_PERIOD_S, LEASE_LIMIT_S, NODES, Stage

LIMIT_S = 120.0
T = TypeVar("T")


def play(stage: Stage, narrator: Narrator) -> None:
    """Raises StepMissedError at the first step that was not seen, ProcessError when a program did not start."""
    _Play(stage, narrator).run()


class _Play:
    def __init__(self, stage: Stage, narrator: Narrator):
        self.stage = stage
        self.tell = narrator

    def run(self) -> None:
        self.control_plane()
        self.nodes()
        self.scheduling()
        self.health_pods()
        self.spread()
        self.plugin_broken()
        self.new_pods_avoid_it()
        self.all_broken()
        self.two_heal()
        self.agent_killed()
        self.all_heal()
        self.everywhere_again()

    # ---- the set

    def control_plane(self) -> None:
        self.tell.step("A control plane starts on loopback: etcd, kube-apiserver, kube-controller-manager.")
        self.stage.raise_plane()
        self.observed = Observed(self.stage.api)
        self.tell.seen("control plane", f"API server ready at {self.stage.plane.server}", self.stage.plane.start_s)

    def nodes(self) -> None:
        self.tell.step("Three agents start in mode kubelet. Each registers as a node and keeps its Lease fresh.")
        self.stage.start_nodes()
        self._await(
            "three nodes",
            lambda: self.observed.ready_nodes() == list(NODES),
            lambda _: f"{', '.join(NODES)} are Ready",
        )

    def scheduling(self) -> None:
        self.tell.step("The extender starts, and kube-scheduler with a configuration that names it.")
        started = time.monotonic()
        self.stage.start_scheduling()
        self.tell.seen("scheduler + extender", "both say that they are ready", time.monotonic() - started)

    def health_pods(self) -> None:
        self.tell.step(
            "The health DaemonSet is created: on each node one pod asks every second whether the CNI plugins can "
            "be run and whether the name server answers."
        )
        self.stage.deploy_health_pods()
        self._await(
            "health pods",
            lambda: self.observed.health_is(node_1="healthy", node_2="healthy", node_3="healthy"),
            lambda _: "one health pod on each node, all Ready",
        )

    # ---- the story

    def spread(self) -> None:
        self.tell.step("Deployment web asks for 6 pods.")
        self.stage.deploy("web", 6)
        self._await(
            "6 pods spread",
            lambda: self._running("web", total=6, everywhere=True),
            lambda running: f"pods on {spread(running)}",
        )

    def plugin_broken(self) -> None:
        self.tell.step(
            "node-2's CNI plugin loses its x bit, as by a bad package update. No kubelet looks there. The check runs "
            f"every {CHECK_PERIOD_S} s and must fail {CHECK_FAILURES} times."
        )
        self.stage.break_plugin("node-2")
        self._await(
            "node-2's check fails",
            lambda: self.observed.health_is(node_1="healthy", node_2="unhealthy", node_3="healthy"),
            lambda _: "the health pod of node-2 is not Ready, the others are",
        )
        self._why("node-2")

    def new_pods_avoid_it(self) -> None:
        before = self.observed.running("web")["node-2"]
        self.tell.step("web is scaled to 12. The node node-2 is still Ready: only readygate keeps new pods off it.")
        self.stage.scale("web", 12)
        running = self._await(
            "new pods avoid node-2",
            lambda: self._running("web", total=12),
            lambda running: f"pods on {spread(running)}: none of the 6 new ones on node-2",
            right=lambda running: running["node-2"] == before,
        )
        self.tell.note(f"The {running['node-2']} old pods on node-2 run on: readygate never evicts.")

    def all_broken(self) -> None:
        self.tell.step("Faults on the other two: node-1's plugin loses its x bit too, node-3's name server dies.")
        self.stage.break_plugin("node-1")
        self.stage.kill_name_server("node-3")
        self._await(
            "all three unhealthy",
            lambda: self.observed.health_is(node_1="unhealthy", node_2="unhealthy", node_3="unhealthy"),
            lambda _: "no health pod is Ready; every Node object still is",
            right=lambda _: self.observed.ready_nodes() == list(NODES),
        )
        self._why("node-3")
        self.tell.step("Deployment late asks for 3 pods. kube-scheduler has nowhere to put them, and says why:")
        self.stage.deploy("late", 3)
        text = self._await(
            "3 pods pending",
            lambda: self._texts_of_pending("late", 3),
            lambda _: "3 pods pending, each with the event FailedScheduling",
            right=lambda text: f"3 {reasons.CLOSED_UNHEALTHY}" in text,
        )
        self.tell.quote(text)

    def two_heal(self) -> None:
        self.tell.step("node-1's plugin and node-3's name server are repaired. Nobody touches the pending pods.")
        self.stage.mend_plugin("node-1")
        self.stage.start_name_server("node-3")
        running = self._await(
            "pending pods bind",
            lambda: self._running("late", total=3),
            lambda running: f"late runs on {spread(running)}",
            right=lambda running: not running["node-2"],
        )
        if len(running) == 1:
            self.tell.note("All went to the node that opened first: pending pods do not wait for the second one.")
        self._await(
            "both nodes healed",
            lambda: self.observed.health_is(node_1="healthy", node_2="unhealthy", node_3="healthy"),
            lambda _: "the health pods of node-1 and node-3 are Ready",
        )

    def agent_killed(self) -> None:
        self.tell.step(
            "node-3's kubelet dies (here: the agent that plays it). In the API server its pods stay Ready, only its "
            f"Lease is no longer renewed. Limit here: {LEASE_LIMIT_S} s. Each second a pod is created for node-3."
        )
        self.stage.kill_agent("node-3")
        names = (f"wants-node-3-{number}" for number in itertools.count(1))
        landed: list[str] = []
        text = self._await(
            "the lost node closes",
            lambda: self._refused_pod_for("node-3", next(names), landed),
            lambda _: f"node-3 takes no pod any more; {len(landed)} had been placed in the seconds before",
            right=lambda text: reasons.CLOSED_NODE_LOST in text,
        )
        self.tell.quote(text)
        for name in landed:
            self.stage.delete_pod(name)

    def all_heal(self) -> None:
        self.tell.step("node-2 is still broken. A pod that may run there and nowhere else is created: it waits.")
        self.stage.add_pod_for("wants-node-2", "node-2")
        self._await(
            "a pod waits for node-2",
            lambda: self.observed.refused("wants-node-2"),
            lambda _: "pending: its only node is closed",
            right=lambda text: reasons.CLOSED_UNHEALTHY in text,
        )
        self.tell.step("All heals: node-2's plugin gets its x bit back, node-3's kubelet is started again.")
        self.stage.mend_plugin("node-2")
        self.stage.start_agent("node-3")
        waiting = {"wants-node-2": "node-2", self.wants_node_3: "node-3"}
        started = time.monotonic()
        for name, node in waiting.items():
            self._await(
                f"{node} takes its pod",
                lambda name=name: self.observed.bound_to(name),
                lambda _, name=name, node=node: f"{name} is bound to {node}",
                since=started,
            )

    def everywhere_again(self) -> None:
        self.tell.step("web is scaled to 18.")
        before = self.observed.running("web")
        self.stage.scale("web", 18)
        self._await(
            "new pods everywhere",
            lambda: self._running("web", total=18),
            lambda running: f"pods on {spread(running)}",
            right=lambda running: running["node-2"] > before["node-2"],
        )

    # ---- looks

    def _why(self, node: str) -> None:
        """What the extender says of a closed node, as `readygate status` shows it."""
        evidence = self._await(
            f"why {node} is closed",
            lambda: self.stage.evidence(node),
            lambda _: "readygate status names the check",
        )
        self.tell.quote(f"{node}: {evidence}")

    def _await(
        self,
        step: str,
        look: Callable[[], T | None],
        seen: Callable[[T], str],
        *,
        right: Callable[[T], bool] = lambda _: True,
        since: float | None = None,
    ) -> T:
        def look_at_programs_first() -> T | None:
            self.stage.check()  # a program that ended explains more than a step that is never seen
            return look()

        return self.tell.await_seen(
            step, look_at_programs_first, seen, right=right, instead=self.observed.summary, limit_s=LIMIT_S, since=since
        )

    def _running(self, app: str, *, total: int, everywhere: bool = False) -> Counter[str] | None:
        """Pods by node, once `total` of them run, and on every node if that is wanted."""
        running = self.observed.running(app)
        if running.total() != total or (everywhere and len(running) < len(NODES)):
            return None
        return running

    def _texts_of_pending(self, app: str, count: int) -> str | None:
        """One of the events, once `count` pods are pending and each has one."""
        texts = [self.observed.failed_scheduling(pod) for pod in self.observed.pending(app)]
        return texts[0] if len(texts) == count and all(texts) else None

    def _refused_pod_for(self, node: str, name: str, landed: list[str]) -> str | None:
        """Makes a pod for the node and looks at it for a second: what it was told when it was refused, else None."""
        self.stage.add_pod_for(name, node)
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            if text := self.observed.refused(name):
                self.wants_node_3 = name
                return text
            time.sleep(0.05)
        if self.observed.bound_to(name):
            landed.append(name)
        return None
