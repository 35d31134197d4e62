"""Rows K, Y, I, B: pkg/kubelet/status/generate_test.go of v1.36.3, and what follows from its source."""

from dataclasses import replace

import pytest

from agent.kubelet.status import conditions
from agent.kubelet.status.generate import sandbox_usable
from agent.wire.containers import RuntimePod, Sandbox
from agent.wire.model import Condition, ContainerStatus, Pod, PodPhase, PodStatus
from agent.wire.semantics import Semantics
from tests.agent.kubelet.status.builders import (
    condition,
    exited,
    make_pod,
    make_status,
    running,
    sidecar,
    waiting,
    words,
)

Words = tuple[str, str, str]  # status, reason, message
Statuses = tuple[ContainerStatus, ...] | None  # None: not known
TRUE = ("True", "", "")
UNKNOWN = ("False", "UnknownContainerStatuses", "")
COMPLETED = ("False", "PodCompleted", "")
FAILED = ("False", "PodFailed", "")
SUCCEEDED_PHASE, FAILED_PHASE = PodPhase.SUCCEEDED, PodPhase.FAILED


def not_ready(*, unknown: str = "", unready: str = "") -> Words:
    """By the names of containers."""
    parts = {"unknown": unknown, "unready": unready}
    said = [f"containers with {what} status: [{names}]" for what, names in parts.items() if names]
    return ("False", "ContainersNotReady", ", ".join(said))


def ready(name: str) -> ContainerStatus:
    return running(name, ready=True, started=True)


ONE = make_pod("a")
TWO = make_pod("a", "b")
ONE_SIDECAR = make_pod("app", init=(sidecar("s1"),))
SIDECARS = make_pod("app", init=(sidecar("s1"), sidecar("s2")))
NOT_THE_FIRST = not_ready(unknown="b", unready="a")


def row(name: str, pod: Pod, statuses: Statuses, expected: Words, phase: PodPhase = PodPhase.RUNNING) -> object:
    return pytest.param(pod, statuses, phase, expected, id=name)


CONTAINERS_READY = [
    row("K1 statuses not known", make_pod(), None, UNKNOWN),
    row("K2 nothing in the spec", make_pod(), (), TRUE),
    row("K3 no status", ONE, (), not_ready(unknown="a")),
    row("K4 both ready", TWO, (ready("a"), ready("b")), TRUE),
    row("K5 one without status", TWO, (ready("a"),), not_ready(unknown="b")),
    row("K6 one not ready", TWO, (ready("a"), running("b")), not_ready(unready="b")),
    row("K7 succeeded", ONE, (running("a"),), COMPLETED, SUCCEEDED_PHASE),
    row("K8 sidecar without status", ONE_SIDECAR, (ready("app"),), not_ready(unknown="s1")),
    row("K9 two sidecars and the app ready", SIDECARS, (ready("s1"), ready("s2"), ready("app")), TRUE),
    row("K10 second sidecar without status", SIDECARS, (ready("s1"), ready("app")), not_ready(unknown="s2")),
    row("K11 second not ready", SIDECARS, (ready("s1"), running("s2"), ready("app")), not_ready(unready="s2")),
    row("K12 unknown comes before unready", TWO, (running("a"),), NOT_THE_FIRST),
    row("K13 failed with all ready", ONE, (ready("a"),), FAILED, FAILED_PHASE),
    row("K14 succeeded with one unknown", TWO, (running("a"),), NOT_THE_FIRST, SUCCEEDED_PHASE),
    row("K15 failed with statuses not known", ONE, None, UNKNOWN, FAILED_PHASE),
    row("regular init never counts", make_pod("a", init=("init",)), (ready("a"),), TRUE),
]


@pytest.mark.parametrize(("pod", "statuses", "phase", "expected"), CONTAINERS_READY)
def test_containers_ready(pod: Pod, statuses: Statuses, phase: PodPhase, expected: Words) -> None:
    assert expected == words(conditions.containers_ready_condition(pod, None, statuses, phase))


@pytest.mark.parametrize(("pod", "statuses", "phase", "expected"), CONTAINERS_READY)
def test_ready_follows_containers_ready_without_gates(
    pod: Pod, statuses: Statuses, phase: PodPhase, expected: Words
) -> None:
    """Rows Y1-Y7 are K1-K7 under the type Ready."""
    made = conditions.ready_condition(pod, None, (), statuses, phase)
    assert ("Ready", *expected) == (made.type, *words(made))


def gates_not_ready(*, absent: str = "", bad: str = "", status: str = "False") -> Words:
    """The gates absent and the gates that are not True, as the pod's own text has them."""
    said = []
    if absent:
        said.append(f'corresponding condition of pod readiness gate "{absent}" does not exist.')
    if bad:
        said.append(f'the status of pod readiness gate "{bad}" is not "True", but {status}')
    return ("False", "ReadinessGatesNotReady", ", ".join(said))


FIRST, SECOND = condition("g1"), condition("g2")
FIRST_FALSE, SECOND_FALSE = condition("g1", "False"), condition("g2", "False")
SECOND_UNKNOWN = condition("g2", "Unknown")
BOTH_BAD = gates_not_ready(absent="g1", bad="g2", status="Unknown")


@pytest.mark.parametrize(
    ("gates", "given", "statuses", "expected"),
    [
        pytest.param(["g1"], [], (), gates_not_ready(absent="g1"), id="Y8 gate absent"),
        pytest.param(["g1"], [FIRST_FALSE], (), gates_not_ready(bad="g1"), id="Y9 False"),
        pytest.param(["g1"], [FIRST], (), TRUE, id="Y10 True"),
        pytest.param(["g1", "g2"], [FIRST], (), gates_not_ready(absent="g2"), id="Y11 second absent"),
        pytest.param(["g1", "g2"], [FIRST, SECOND_FALSE], (), gates_not_ready(bad="g2"), id="Y12 second False"),
        pytest.param(["g1", "g2"], [FIRST, SECOND], (), TRUE, id="Y13 both True"),
        pytest.param(["g1"], [FIRST], (running("a"),), not_ready(unready="a"), id="Y14 gate True, container not ready"),
        pytest.param(["g1", "g2"], [SECOND_UNKNOWN], (), BOTH_BAD, id="Y15 both bad, in spec order"),
    ],
)
def test_ready_with_gates(
    gates: list[str], given: list[Condition], statuses: tuple[ContainerStatus, ...], expected: Words
) -> None:
    pod = make_pod(*(s.name for s in statuses), readiness_gates=tuple(gates))
    assert expected == words(conditions.ready_condition(pod, None, given, statuses, PodPhase.RUNNING))


WAS_INITIALIZED = make_status(conditions=(condition("Initialized"),))
WAS_NOT = make_status(conditions=(condition("Initialized", "False"),))
NOT_INITIALIZED = ("False", "ContainersNotInitialized")
INITIALIZED = ("True", "")
GATE_OFF = Semantics(restart_all_containers_on_container_exits=False)


def init_row(
    name: str,
    pod: Pod,
    statuses: Statuses,
    expected: tuple[str, str],
    *,
    phase: str = "Running",
    old: PodStatus | None = None,
    semantics: Semantics | None = None,
) -> object:
    on = Semantics(restart_all_containers_on_container_exits=True)
    return pytest.param(pod, statuses, PodPhase(phase), old, semantics or on, expected, id=name)


INIT = make_pod(init=("a",))
INITS = make_pod(init=("a", "b"))
WITH_APP = make_pod("app", init=("a",))
SIDECAR = make_pod("app", init=(sidecar("s"),))
STARTED, NOT_STARTED = running("s", started=True), running("s", started=False)


@pytest.mark.parametrize(
    ("pod", "statuses", "phase", "old", "semantics", "expected"),
    [
        init_row("I1 not known, two init", INITS, None, UNKNOWN[:2]),
        init_row("I2 no init", make_pod(), (), INITIALIZED),
        init_row("no init, statuses not known", make_pod(), None, INITIALIZED),
        init_row("I3 no status", INIT, (), NOT_INITIALIZED),
        init_row("I4 both ready", INITS, (ready("a"), ready("b")), INITIALIZED),
        init_row("I5 one missing", INITS, (ready("a"),), NOT_INITIALIZED),
        init_row("I6 one unready", INITS, (ready("a"), running("b")), NOT_INITIALIZED),
        init_row("I7 succeeded", INIT, (running("a"),), ("True", "PodCompleted"), phase="Succeeded"),
        init_row("I8 not started", SIDECAR, (NOT_STARTED, waiting("app")), NOT_INITIALIZED, phase="Pending"),
        init_row("I9 sidecar started", SIDECAR, (STARTED, waiting("app")), INITIALIZED, phase="Pending"),
        init_row("I10 sidecar not started, but the app runs", SIDECAR, (NOT_STARTED, running("app")), INITIALIZED),
        init_row("I11 init waits, but the app has ended", WITH_APP, (waiting("a"), exited("app")), INITIALIZED),
        init_row("I12 once initialized, gate on", INIT, (), INITIALIZED, old=WAS_INITIALIZED),
        init_row("I13 gate off", INIT, (), NOT_INITIALIZED, old=WAS_INITIALIZED, semantics=GATE_OFF),
        init_row("I13 was not initialized", INIT, (), NOT_INITIALIZED, old=WAS_NOT),
    ],
)
def test_initialized(
    pod: Pod,
    statuses: Statuses,
    phase: PodPhase,
    old: PodStatus | None,
    semantics: Semantics,
    expected: tuple[str, str],
) -> None:
    made = conditions.initialized_condition(pod, old, statuses, phase, semantics)
    assert expected == words(made)[:2]


def test_initialized_names_unknown_and_incomplete_containers() -> None:
    made = conditions.initialized_condition(
        make_pod(init=("a", "b")), None, (running("b"),), PodPhase.PENDING, Semantics()
    )
    assert made.message == "containers with unknown status: [a], containers with incomplete status: [b]"


@pytest.mark.parametrize(
    ("sandboxes", "host_network", "expected"),
    [
        pytest.param((), False, False, id="B1 none"),
        pytest.param((Sandbox(False, "10.0.0.1"),), False, False, id="B2 not ready"),
        pytest.param((Sandbox(True, ""),), False, False, id="B3 ready without address"),
        pytest.param((Sandbox(True, "10.0.0.1"),), False, True, id="B4 ready with address"),
        pytest.param((Sandbox(True, "10.0.0.1"), Sandbox(True, "10.0.0.2")), False, False, id="B5 two ready"),
        pytest.param((Sandbox(True, "", host_network=True),), True, True, id="B6 host network needs no address"),
        pytest.param((Sandbox(True, None),), False, True, id="B6 no network block"),
        pytest.param((Sandbox(True, "10.0.0.1"),), True, False, id="another network mode than the spec's"),
        pytest.param((Sandbox(True, "10.0.0.1"), Sandbox(False, "")), False, True, id="the newest counts"),
    ],
)
def test_ready_to_start_containers(sandboxes: tuple[Sandbox, ...], host_network: bool, expected: bool) -> None:
    pod = make_pod(host_network=host_network)
    usable = sandbox_usable(pod, RuntimePod("uid-1", sandboxes))
    made = conditions.ready_to_start_condition(pod, None, sandbox_usable=usable)
    assert ("True" if expected else "False", "", "") == words(made)


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        pytest.param(None, 0, id="no old status: none"),
        pytest.param(PodStatus(), 7, id="the generation of the pod"),
    ],
)
def test_observed_generation_of_a_condition(old: PodStatus | None, expected: int) -> None:
    pod = make_pod("a", generation=7)
    made = [
        conditions.containers_ready_condition(pod, old, (), PodPhase.RUNNING),
        conditions.ready_condition(pod, old, (), (), PodPhase.RUNNING),
        conditions.initialized_condition(pod, old, (), PodPhase.RUNNING, Semantics()),
        conditions.ready_to_start_condition(pod, old, sandbox_usable=True),
        conditions.scheduled_condition(pod, old),
    ]
    assert [expected] * 5 == [c.observed_generation for c in made]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("PodScheduled", "owned"),
        ("Ready", "owned"),
        ("Initialized", "owned"),
        ("ContainersReady", "owned"),
        ("PodResizeInProgress", "owned"),
        ("PodResizePending", "owned"),
        ("PodReadyToStartContainers", "owned"),
        ("AllContainersRestarting", "owned"),
        ("DisruptionTarget", "shared"),
        ("abcd", "foreign"),
        ("Unschedulable", "foreign"),
        ("readygate.dev/NodeHealthy", "foreign"),
    ],
)
def test_s97_who_owns_a_condition(kind: str, expected: str) -> None:
    owned, shared = conditions.is_owned(kind, Semantics()), conditions.is_shared(kind)
    assert expected == ("owned" if owned else "shared" if shared else "foreign")


def test_s96_a_condition_of_a_new_type_is_appended() -> None:
    assert (condition("A"), condition("B")) == conditions.replace_or_append((condition("A"),), condition("B"))


def test_s96_a_condition_of_a_known_type_is_replaced_in_its_place() -> None:
    made = conditions.replace_or_append((condition("A"), condition("B")), condition("A", "False"))
    assert (condition("A", "False"), condition("B")) == made


GATED = make_pod("app", init=(sidecar("s"),), readiness_gates=("gate",))


def api_status(*, ready_word: str, gate: str = "True", message: str = "") -> PodStatus:
    return PodStatus(
        phase=PodPhase.RUNNING,
        conditions=(Condition("gate", gate), Condition("Ready", ready_word, message=message)),
        container_statuses=(ready("app"),),
        init_container_statuses=(ready("s"),),
    )


@pytest.mark.parametrize(
    ("pod", "status", "expected"),
    [
        pytest.param(make_pod("app"), api_status(ready_word="False"), False, id="no gates"),
        pytest.param(GATED, api_status(ready_word="True"), False, id="S102 agrees, with a sidecar"),
        pytest.param(GATED, api_status(ready_word="False"), True, id="gate turned True"),
        pytest.param(GATED, api_status(ready_word="True", gate="False"), True, id="gate turned False"),
        pytest.param(GATED, PodStatus(), False, id="no Ready condition yet"),
    ],
)
def test_readiness_is_reconciled_when_a_gate_and_ready_disagree(pod: Pod, status: PodStatus, expected: bool) -> None:
    assert expected is conditions.need_to_reconcile_readiness(replace(pod, status=status), Semantics())


def test_s102_without_its_fix_a_ready_pod_with_gate_and_sidecar_is_synced_at_each_status() -> None:
    as_upstream = Semantics(fix_readiness_without_sidecars=False)
    pod = replace(GATED, status=api_status(ready_word="True"))
    assert conditions.need_to_reconcile_readiness(pod, as_upstream) is True
