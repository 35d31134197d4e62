"""What probes found before a restart of the agent counts on after it (row M43)."""

from dataclasses import replace

import pytest

from agent.kubelet.prober.manager import RESTORED_S, ProberManager, WorkerKey
from agent.kubelet.prober.results import Results
from agent.kubelet.prober.worker import Worker
from agent.probe.streak import Kept, Streak
from agent.wire.model import ContainerStatus, PodStatus, ProbeUpdate
from agent.wire.semantics import Semantics
from tests.agent.kubelet.prober.builders import (
    GATE_ON,
    ID,
    LIVENESS,
    NAME,
    NOW,
    READINESS,
    STARTUP,
    UID,
    F,
    S,
    make_container,
    make_pod,
    make_probe,
    make_status,
    running,
)
from tools.kit.clock import Clock


class Agent:
    """A prober manager whose workers make their steps when the test says so."""

    def __init__(self, restored=None, *, semantics: Semantics | None = None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Worker, "start", lambda _worker: None)
        self.clock = Clock(NOW)
        self.outcome = S
        self.updates: list[ProbeUpdate] = []
        self.probed = 0
        self.statuses: dict[str, PodStatus] = {UID: make_status(running(NOW - 3))}
        self.results = {kind: Results(self.updates.append) for kind in (READINESS, LIVENESS, STARTUP)}
        self.manager = ProberManager(
            get_pod_status=self.statuses.get,
            probe=self._probe,
            readiness=self.results[READINESS],
            liveness=self.results[LIVENESS],
            startup=self.results[STARTUP],
            semantics=semantics or Semantics(),
            wall=lambda: NOW,
            monotonic=self.clock,
            restored=restored or {},
        )

    def _probe(self, *_arguments: object):
        self.probed += 1
        return self.outcome

    def probes(self, pod, *outcomes) -> None:
        self.manager.add_pod(pod)
        for self.outcome in outcomes:
            for worker in list(self.manager._workers.values()):
                worker.do_probe()

    def ready(self, pod) -> bool:
        shown = ContainerStatus(name=NAME, state=running(NOW - 3), started=True, container_id=ID)
        (status,) = self.manager.update_pod_status(pod, PodStatus(container_statuses=(shown,))).container_statuses or ()
        return status.ready


def pod_with(kind, **probe):
    return make_pod(make_container(kind, probe=make_probe(**probe)))


def test_m43_a_young_container_stays_ready_before_its_worker_has_made_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    pod = pod_with(READINESS)
    before = Agent(monkeypatch=monkeypatch)
    before.probes(pod, S)
    after = Agent(before.manager.kept(), monkeypatch=monkeypatch)
    after.manager.add_pod(pod)
    assert (True, []) == (after.ready(pod), after.updates)
    without = Agent(monkeypatch=monkeypatch)
    without.manager.add_pod(pod)
    assert not without.ready(pod)
    after.probes(pod, S)
    assert (True, []) == (after.ready(pod), after.updates)


def test_m43_runs_are_counted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    pod = pod_with(READINESS, failure_threshold=3)
    before = Agent(monkeypatch=monkeypatch)
    before.probes(pod, S, F, F)
    after = Agent(before.manager.kept(), monkeypatch=monkeypatch)
    assert after.results[READINESS].get(ID) is S
    after.probes(pod, F)
    assert after.results[READINESS].get(ID) is F


def test_m43_what_rests_goes_on_resting(monkeypatch: pytest.MonkeyPatch) -> None:
    pod = pod_with(LIVENESS)
    before = Agent(monkeypatch=monkeypatch)
    before.probes(pod, F)
    after = Agent(before.manager.kept(), monkeypatch=monkeypatch)
    assert after.results[LIVENESS].get(ID) is F, "so it is ended at once"
    after.probes(pod, S, S)
    assert (0, F) == (after.probed, after.results[LIVENESS].get(ID))
    after.statuses[UID] = make_status(running(NOW - 1), container_id="test://next")
    after.probes(pod, S)
    assert (1, None, S) == (after.probed, after.results[LIVENESS].get(ID), after.results[LIVENESS].get("test://next"))


def test_m43_a_run_is_kept_as_far_as_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the file would be written after each probe."""
    pod = pod_with(READINESS, success_threshold=2, failure_threshold=1)
    agent = Agent(monkeypatch=monkeypatch)
    agent.probes(pod, S, S)
    kept = agent.manager.kept()
    agent.probes(pod, S, S, S)
    assert {(ID, READINESS): Kept(S, Streak(S, 2), on_hold=False)} == kept == agent.manager.kept()


def test_m43_what_is_not_found_again_is_forgotten_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    pod = pod_with(READINESS)
    before = Agent(monkeypatch=monkeypatch)
    before.probes(pod, S)
    kept = {**before.manager.kept(), ("test://gone", LIVENESS): Kept(F, Streak(F, 0), on_hold=True)}
    after = Agent(kept, monkeypatch=monkeypatch)
    after.probes(pod, S)
    after.manager.cleanup_pods({UID})
    assert kept == after.manager.kept()
    after.clock.time += RESTORED_S + 1
    after.manager.cleanup_pods({UID})
    assert ({(ID, READINESS)}, None) == (set(after.manager.kept()), after.results[LIVENESS].get("test://gone"))
    assert after.results[READINESS].get(ID) is S


def test_m43_where_a_restart_is_to_show_nothing_counts_on(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Agent(monkeypatch=monkeypatch)
    before.probes(pod_with(READINESS), S)
    after = Agent(before.manager.kept(), semantics=replace(GATE_ON), monkeypatch=monkeypatch)
    assert (None, {}) == (after.results[READINESS].get(ID), after.manager.kept())
    assert WorkerKey(UID, NAME, READINESS) not in after.manager.workers()
