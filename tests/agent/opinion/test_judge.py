"""What is published of a health pod, and what is said of it, by scripted pods, probes, checks and kubelets."""

from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import groupby
from random import Random

import pytest

from agent.checks.health import node_health
from agent.checks.state import CheckState, CheckStatus, Severity
from agent.opinion.checks_per_pod import ChecksPerPod, Entry, counting_of
from agent.opinion.judge import Facts, Judge
from agent.opinion.selection import Chosen, HealthPods
from agent.opinion.verdict import Finding, readyz
from agent.report.condition import Condition
from agent.wire.condition import ANNOTATION_SPEAKER
from agent.wire.containers import ContainerPhase, RuntimeContainer, RuntimePod
from agent.wire.model import Container, ExecAction, HttpGetAction, Pod, PodStatus, Probe, Result
from agent.wire.semantics import Semantics
from tests.agent.kubelet.status.builders import NOW, condition, make_pod, running
from tools.kit.cases import cases
from tools.kit.clock import Clock

PROBE = Probe(HttpGetAction(80), period_s=5, failure_threshold=2, timeout_s=1)  # a budget of 11 s
ASKED = {ANNOTATION_SPEAKER: "node"}
BAD = CheckStatus("disk", Severity.GATE, 0.0, CheckState.FAILED, "read-only")
UNHEALTHY = [BAD]
HEALTHY = [replace(BAD, state=CheckState.PASSED)]
STARTING = [replace(BAD, state=CheckState.STARTING)]
HEALTH = HealthPods("ns", "app=health")
SILENT = Finding("KubeletSilent", "the kubelet has stopped renewing its Lease")


class Scene:
    """A judge and all that it looks at."""

    def __init__(self) -> None:
        self.clock = Clock(NOW + 1000.0)
        self.found: list[Pod] = []
        self.synced = self.news = True
        self.by_kubelet = False
        self.results: dict[str, Result] = {}
        self.checks = HEALTHY
        self.counting = counting_of([Entry(HEALTH)], ["disk"])
        self.chosen_by: dict[str, frozenset[HealthPods]] = {}  # by uid; none: by the one entry
        self.node: list[Finding] = []
        self.probed: list[Pod] = []
        self.said: list[tuple[str, str, str]] = []  # pod, status, reason; where that has changed
        self.kept: set[str] = set()
        self.runtime: RuntimePod | None = None
        self.kubelet_known = True
        self.judge = self.made()

    def made(self, counting: Callable[[], ChecksPerPod] | None = None) -> Judge:
        facts = Facts(
            lambda key: self.results.get(key),
            lambda: self.checks,
            counting or (lambda: self.counting),
            lambda: self.node,
            lambda _pod: self.runtime,
            lambda: self.kubelet_known,
        )
        return Judge(
            self, self, facts, self, semantics=Semantics(), disagreement_s=10.0, wall=self.clock, monotonic=self.clock
        )

    def pods(self) -> list[Chosen]:
        return [Chosen(pod, self.chosen_by.get(pod.uid, frozenset({HEALTH}))) for pod in self.found]

    def add_pod(self, pod: Pod) -> None:
        self.probed.append(pod)

    def cleanup_pods(self, desired: Collection[str]) -> None:
        self.probed = [pod for pod in self.probed if pod.uid in desired]

    def say(self, pod: Pod, condition: Condition) -> None:
        one = (pod.name, condition.status, condition.reason)
        if not self.said or one != self.said[-1]:
            self.said.append(one)

    def keep(self, uids: Collection[str]) -> None:
        self.kept = set(uids)

    def turns(self, seconds: int = 1) -> None:
        for _ in range(seconds):
            self.judge.turn()
            self.clock.time += 1.0

    @property
    def findings(self) -> list[str]:
        return [finding.reason for finding in self.judge.findings()]


def health_pod(*, ready: bool = True, probe: Probe = PROBE, **fields: object) -> Pod:
    told = (condition("ContainersReady", "True" if ready else "False"),)
    status = PodStatus(
        phase="Running", conditions=told, container_statuses=(running("web", started=True, ready=ready),)
    )
    given = {"annotations": ASKED, "status": status, **fields}
    return make_pod(Container("web", readiness_probe=probe), **given)


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.found = [health_pod()]
    scene.results["test://web"] = Result.SUCCESS
    return scene


def test_agreement_is_the_normal_case_and_says_that_all_is_well(scene: Scene) -> None:
    scene.turns(60)
    assert ([("pod-1", "True", "ChecksPassed")], []) == (scene.said, scene.findings)


def test_a_probe_that_fails_closes_at_once_and_opens_at_once(scene: Scene) -> None:
    scene.turns()
    scene.results["test://web"] = Result.FAILURE
    scene.turns()
    scene.results["test://web"] = Result.SUCCESS
    scene.turns()
    assert ["True", "False", "True"] == [status for _, status, _ in scene.said]
    assert "ProbesFailed" == scene.said[1][2]


def test_a_kubelet_that_comes_back_finds_the_same_and_nothing_flaps(scene: Scene) -> None:
    scene.turns()
    scene.results["test://web"] = Result.FAILURE
    scene.turns(5)
    scene.found = [health_pod(ready=False)]  # it says so too
    scene.turns(60)
    scene.results["test://web"] = Result.SUCCESS  # over: we see it first
    scene.turns(5)
    scene.found = [health_pod()]
    scene.turns(60)
    assert ["True", "False", "True"] == [status for _, status, _ in scene.said]


def test_a_kubelet_that_stands_by_ready_disagrees(scene: Scene) -> None:
    scene.turns()
    scene.results["test://web"] = Result.FAILURE
    scene.turns(30)
    assert ["ChecksPassed", "ProbesFailed", "KubeletDisagrees"] == [reason for _, _, reason in scene.said]


@pytest.mark.parametrize(
    ("node", "checks", "expected"),
    [
        pytest.param([SILENT], HEALTHY, ("False", "KubeletSilent"), id="the kubelet is silent"),
        pytest.param([], UNHEALTHY, ("False", "CheckFailed"), id="a check fails"),
        pytest.param([SILENT], UNHEALTHY, ("False", "CheckFailed"), id="both: the check explains more"),
        pytest.param([SILENT], STARTING, ("False", "KubeletSilent"), id="it is silent while checks start"),
        pytest.param([], [], ("True", "ChecksPassed"), id="no check is configured"),
    ],
)
def test_checks_and_findings_join(
    scene: Scene, node: list[Finding], checks: list[CheckStatus], expected: tuple[str, str]
) -> None:
    scene.node, scene.checks = node, checks
    scene.counting = counting_of([Entry(HEALTH)], [check.name for check in checks])
    scene.turns()
    assert [("pod-1", *expected)] == scene.said


def test_nothing_is_said_while_checks_start(scene: Scene) -> None:
    scene.checks = STARTING
    scene.turns(30)
    assert [] == scene.said


def test_a_start_says_that_all_is_well_only_when_our_probes_were_heard_or_had_their_time(scene: Scene) -> None:
    """What was closed before a restart, with the kubelet dead, stays so."""
    scene.results.clear()
    scene.turns(12)
    before = list(scene.said)
    scene.turns(3)
    assert ([], [("pod-1", "True", "ChecksPassed")]) == (before, scene.said)


def test_a_pod_that_does_not_ask_for_us_is_looked_at_and_not_spoken_for(scene: Scene) -> None:
    scene.found = [health_pod(annotations={})]
    scene.turns()
    scene.results["test://web"] = Result.FAILURE
    scene.turns()
    assert ([], set(), ["ProbesFailed"]) == (scene.said, scene.kept, scene.findings)


def test_a_pod_that_is_told_to_end_is_spoken_for_no_longer(scene: Scene) -> None:
    scene.turns()
    scene.found = [health_pod(deletion_timestamp=1.0)]
    scene.results["test://web"] = Result.FAILURE  # as it should
    scene.turns()
    assert (set(), []) == (scene.kept, scene.findings)


def test_a_pod_that_takes_the_place_of_another_begins_anew(scene: Scene) -> None:
    """By uid: the words on the old one are not those on the new one."""
    scene.turns()
    scene.results["test://web"] = Result.FAILURE
    scene.found = [health_pod(ready=False, uid="uid-2")]
    scene.turns(60)
    assert ({"uid-2"}, []) == (scene.kept, scene.findings)


def test_of_two_health_pods_each_has_its_own_word(scene: Scene) -> None:
    other = health_pod(uid="uid-2", name="pod-2")
    bad = replace(other.status.container_statuses[0], container_id="test://bad")
    scene.found.append(replace(other, status=replace(other.status, container_statuses=(bad,))))
    scene.results["test://bad"] = Result.SUCCESS
    scene.turns()
    scene.results["test://bad"] = Result.FAILURE
    scene.said.clear()
    scene.turns()
    assert [("pod-1", "True", "ChecksPassed"), ("pod-2", "False", "ProbesFailed")] == scene.said


def test_a_probe_that_is_a_command_is_said_and_is_no_failure(scene: Scene) -> None:
    scene.found = [health_pod(probe=Probe(ExecAction(("true",))))]
    scene.turns(60)
    assert ([("pod-1", "True", "ChecksPassed")], ["ProbeNotMade"]) == (scene.said, scene.findings)
    assert [None] == [c.readiness_probe for c in scene.probed[0].containers]


def test_with_the_api_server_away_the_last_known_pods_are_looked_at(scene: Scene) -> None:
    scene.turns()
    scene.news = False
    scene.results["test://web"] = Result.FAILURE
    scene.turns(300)
    assert ["APIServerAway", "ProbesFailed"] == scene.findings


def of_runtime(id_: str, phase: ContainerPhase) -> RuntimePod:
    return RuntimePod("uid-1", containers=(RuntimeContainer(f"test://{id_}", "web", phase, 1.0, started_at=2.0),))


def test_a_container_that_has_ended_closes_before_anybody_has_told_so(scene: Scene) -> None:
    scene.runtime = of_runtime("web", ContainerPhase.RUNNING)
    scene.turns()
    scene.runtime = of_runtime("web", ContainerPhase.EXITED)
    scene.turns()
    assert ["ChecksPassed", "ProbesFailed"] == [reason for _, _, reason in scene.said]


def test_probes_are_of_the_container_that_runs_also_before_anybody_has_told_of_it(scene: Scene) -> None:
    scene.runtime = of_runtime("again", ContainerPhase.RUNNING)
    scene.turns()
    status = scene.judge.pod_status("uid-1")
    assert status is not None
    assert [("test://again", True)] == [(c.container_id, c.started) for c in status.container_statuses or ()]


def test_a_runtime_that_falls_silent_is_said_and_closes_nothing(scene: Scene) -> None:
    scene.runtime = of_runtime("web", ContainerPhase.RUNNING)
    scene.turns()
    scene.runtime, scene.node = None, [Finding("RuntimeSilent", "no answer within 5s")]
    scene.turns(60)
    assert ([("pod-1", "True", "ChecksPassed")], ["RuntimeSilent"]) == (scene.said, scene.findings)


def test_our_word_is_a_line_in_the_log_when_it_has_changed(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    scene.turns(10)
    scene.results["test://web"] = Result.FAILURE
    scene.turns(10)
    said = [record for record in caplog.records if record.message == "our word on a health pod"]
    assert ["ready", "not ready"] == [record.__dict__["containers_ready"] for record in said]


def test_before_the_pods_are_known_that_is_said(scene: Scene) -> None:
    scene.found, scene.synced = [], False
    scene.turns()
    assert (["PodsUnknown"], []) == (scene.findings, scene.said)


@cases(
    "checks, findings, expected",
    ("all is well", HEALTHY, [], (True, "ok\n")),
    ("a finding that closes", [], [SILENT], (False, f"KubeletSilent: {SILENT.text}\n")),
    ("one that is said", HEALTHY, [Finding("ProbeNotMade", "web", "ns/p")], (True, "ok\nProbeNotMade: ns/p: web\n")),
    ("a check", UNHEALTHY, [], (False, "disk: failed since 5 s: read-only\n")),
)
def test_what_readyz_says(checks: list[CheckStatus], findings: list[Finding], expected: tuple[bool, str]) -> None:
    assert expected == readyz(node_health(checks) if checks else None, findings, 5.0)


CLOSED = condition("readygate.dev/NodeHealthy", "False", "ProbesFailed", last_transition_time=NOW)
OPEN = condition("readygate.dev/NodeHealthy", "True", "ChecksPassed", last_transition_time=NOW)


def told_before(ours: Condition, *, ready: bool = True, kubelet_at: float = NOW - 100.0) -> Pod:
    """A pod of whose node something was said before the agent was started."""
    pod = health_pod(ready=ready)
    (theirs,) = pod.status.conditions
    conditions = (replace(theirs, last_transition_time=kubelet_at), ours)
    return replace(pod, status=replace(pod.status, conditions=conditions))


@cases(
    "pod, results, expected",
    ("open, probes pass", told_before(OPEN), [Result.SUCCESS], ["True"]),
    ("closed, probes fail on", told_before(CLOSED), [Result.FAILURE], ["False"]),
    ("closed, probes pass: it opens", told_before(CLOSED), [Result.SUCCESS], ["False", "True"]),
    ("closed, nothing is heard: it stays", told_before(CLOSED), [None], ["False"]),
    ("closed, the kubelet says so, too", told_before(CLOSED, ready=False), [Result.FAILURE], ["False"]),
    ("closed, no result, ready by the kubelet since", told_before(CLOSED, kubelet_at=NOW + 100.0), [None], ["True"]),
    ("open, probes fail: closed once both stand", told_before(OPEN), [Result.FAILURE], ["True", "False"]),
    ("each once", told_before(CLOSED), [Result.FAILURE, Result.SUCCESS, Result.FAILURE], ["False", "True", "False"]),
)
def test_a_restart_of_the_agent_turns_nothing_over(pod: Pod, results: list[Result | None], expected: list[str]) -> None:
    """Results of probes are kept nowhere: the first of a new agent come after some seconds."""
    scene = Scene()
    scene.found = [pod]
    scene.turns(5)
    for result in results:
        if result is not None:
            scene.results["test://web"] = result
        scene.turns(60)
    assert expected == [status for status, _ in groupby(status for _, status, _ in scene.said)]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param([SILENT], ["False"], id="it is still silent"),
        pytest.param([], ["True"], id="it is there again"),
    ],
)
def test_what_was_closed_for_a_silent_kubelet_waits_until_it_could_be_heard(
    scene: Scene, node: list[Finding], expected: list[str]
) -> None:
    silent = condition("readygate.dev/NodeHealthy", "False", "KubeletSilent", last_transition_time=NOW)
    scene.found, scene.kubelet_known = [told_before(silent)], False
    scene.turns(5)
    assert [] == scene.said
    scene.node, scene.kubelet_known = node, True
    scene.turns(5)
    assert expected == [status for _, status, _ in scene.said]


class Node(Scene):
    """What is said stands on the pod, as in the API server. `restart` is a new agent, which knows nothing else."""

    def say(self, pod: Pod, condition: Condition) -> None:
        told = next((c for c in self.found[0].status.conditions if c.type == CLOSED.type), None)
        if told is None or (told.status, told.reason) != (condition.status, condition.reason):
            at = self.clock() if told is None or told.status != condition.status else told.last_transition_time
            made = replace(CLOSED, status=condition.status, reason=condition.reason, last_transition_time=at)
            conditions = (*(c for c in pod.status.conditions if c.type != made.type), made)
            self.found = [replace(pod, status=replace(pod.status, conditions=conditions))]
        super().say(pod, condition)

    def restart(self) -> None:
        self.results.clear()
        self.judge = self.made()


def test_a_hundred_restarts_open_nothing_that_fails_and_close_nothing_that_passes(seed: int) -> None:
    """The kubelet is dead and says ready for ever. A result comes some seconds after each start, and each change."""
    random = Random(seed)
    node = Node()
    node.found = [told_before(OPEN, kubelet_at=NOW)]
    node.results["test://web"] = result = Result.SUCCESS
    node.turns()
    for _ in range(100):
        if random.random() < 0.3:
            result = Result.FAILURE if result is Result.SUCCESS else Result.SUCCESS
            node.results["test://web"] = result
            node.turns(random.randrange(1, 60))
        said = len(node.said)
        node.restart()
        node.turns(random.randrange(1, 8))
        node.results["test://web"] = result
        node.turns(random.randrange(1, 60))
        word = "True" if result is Result.SUCCESS else "False"
        assert {word} >= {status for _, status, _ in node.said[said:]}
