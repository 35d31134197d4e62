"""Rows K, Y, I, B: pkg/kubelet/status/generate_test.go of v1.36.3, and what follows from its source."""

from dataclasses import replace

import pytest

from agent.model import Condition, PodPhase, PodStatus
from agent.runtime.base import RuntimePod, Sandbox
from agent.semantics import Semantics
from agent.status import conditions
from agent.status.generate import sandbox_usable
from tests.agent.status.builders import (
    condition,
    exited,
    make_pod,
    make_status,
    running,
    sidecar,
    waiting,
    words,
)

TRUE = ("True", "", "")
UNKNOWN = ("False", "UnknownContainerStatuses", "")
COMPLETED = ("False", "PodCompleted", "")
FAILED = ("False", "PodFailed", "")


def not_ready(message):
    return ("False", "ContainersNotReady", message)


def ready(name):
    return running(name, ready=True, started=True)


TWO = make_pod("1234", "5678")
SIDECARS = make_pod("regular", init=(sidecar("restartable-init-1"), sidecar("restartable-init-2")))
ONE_SIDECAR = make_pod("regular", init=(sidecar("restartable-init-1"),))

CONTAINERS_READY = [
    pytest.param(make_pod(), None, PodPhase.RUNNING, UNKNOWN, id="K1 statuses not known"),
    pytest.param(make_pod(), (), PodPhase.RUNNING, TRUE, id="K2 nothing in the spec"),
    pytest.param(
        make_pod("1234"), (), PodPhase.RUNNING, not_ready("containers with unknown status: [1234]"), id="K3 no status"
    ),
    pytest.param(TWO, (ready("1234"), ready("5678")), PodPhase.RUNNING, TRUE, id="K4 both ready"),
    pytest.param(
        TWO,
        (ready("1234"),),
        PodPhase.RUNNING,
        not_ready("containers with unknown status: [5678]"),
        id="K5 one without status",
    ),
    pytest.param(
        TWO,
        (ready("1234"), running("5678")),
        PodPhase.RUNNING,
        not_ready("containers with unready status: [5678]"),
        id="K6 one not ready",
    ),
    pytest.param(make_pod("1234"), (running("1234"),), PodPhase.SUCCEEDED, COMPLETED, id="K7 succeeded"),
    pytest.param(
        ONE_SIDECAR,
        (ready("regular"),),
        PodPhase.RUNNING,
        not_ready("containers with unknown status: [restartable-init-1]"),
        id="K8 sidecar without status",
    ),
    pytest.param(
        SIDECARS,
        (ready("restartable-init-1"), ready("restartable-init-2"), ready("regular")),
        PodPhase.RUNNING,
        TRUE,
        id="K9 two sidecars and the app ready",
    ),
    pytest.param(
        SIDECARS,
        (ready("restartable-init-1"), ready("regular")),
        PodPhase.RUNNING,
        not_ready("containers with unknown status: [restartable-init-2]"),
        id="K10 second sidecar without status",
    ),
    pytest.param(
        SIDECARS,
        (ready("restartable-init-1"), running("restartable-init-2"), ready("regular")),
        PodPhase.RUNNING,
        not_ready("containers with unready status: [restartable-init-2]"),
        id="K11 second sidecar not ready",
    ),
    pytest.param(
        TWO,
        (running("1234"),),
        PodPhase.RUNNING,
        not_ready("containers with unknown status: [5678], containers with unready status: [1234]"),
        id="K12 unknown comes before unready",
    ),
    pytest.param(make_pod("1234"), (ready("1234"),), PodPhase.FAILED, FAILED, id="K13 failed with all ready"),
    pytest.param(
        TWO,
        (running("1234"),),
        PodPhase.SUCCEEDED,
        not_ready("containers with unknown status: [5678], containers with unready status: [1234]"),
        id="K14 succeeded with one unknown",
    ),
    pytest.param(make_pod("1234"), None, PodPhase.FAILED, UNKNOWN, id="K15 failed with statuses not known"),
    pytest.param(
        make_pod("1234", init=("init",)), (ready("1234"),), PodPhase.RUNNING, TRUE, id="regular init never counts"
    ),
]


@pytest.mark.parametrize(("pod", "statuses", "phase", "expected"), CONTAINERS_READY)
def test_containers_ready(pod, statuses, phase, expected):
    assert expected == words(conditions.containers_ready_condition(pod, None, statuses, phase))


@pytest.mark.parametrize(("pod", "statuses", "phase", "expected"), CONTAINERS_READY)
def test_ready_follows_containers_ready_without_gates(pod, statuses, phase, expected):
    """Rows Y1-Y7 are K1-K7 under the type Ready."""
    made = conditions.ready_condition(pod, None, (), statuses, phase)
    assert ("Ready", *expected) == (made.type, *words(made))


def absent(gate):
    return f'corresponding condition of pod readiness gate "{gate}" does not exist.'


def not_true(gate, status="False"):
    return f'the status of pod readiness gate "{gate}" is not "True", but {status}'


def gates_not_ready(*messages):
    return ("False", "ReadinessGatesNotReady", ", ".join(messages))


@pytest.mark.parametrize(
    ("gates", "given", "statuses", "expected"),
    [
        pytest.param(["gate1"], [], (), gates_not_ready(absent("gate1")), id="Y8 gate absent"),
        pytest.param(["gate1"], [condition("gate1", "False")], (), gates_not_ready(not_true("gate1")), id="Y9 False"),
        pytest.param(["gate1"], [condition("gate1")], (), TRUE, id="Y10 True"),
        pytest.param(
            ["gate1", "gate2"], [condition("gate1")], (), gates_not_ready(absent("gate2")), id="Y11 second absent"
        ),
        pytest.param(
            ["gate1", "gate2"],
            [condition("gate1"), condition("gate2", "False")],
            (),
            gates_not_ready(not_true("gate2")),
            id="Y12 second False",
        ),
        pytest.param(["gate1", "gate2"], [condition("gate1"), condition("gate2")], (), TRUE, id="Y13 both True"),
        pytest.param(
            ["gate1"],
            [condition("gate1")],
            (running("1234"),),
            not_ready("containers with unready status: [1234]"),
            id="Y14 gate True, container not ready",
        ),
        pytest.param(
            ["gate1", "gate2"],
            [condition("gate2", "Unknown")],
            (),
            gates_not_ready(absent("gate1"), not_true("gate2", "Unknown")),
            id="Y15 both bad, in spec order",
        ),
    ],
)
def test_ready_with_gates(gates, given, statuses, expected):
    pod = make_pod(*(s.name for s in statuses), readiness_gates=tuple(gates))
    assert expected == words(conditions.ready_condition(pod, None, given, statuses, PodPhase.RUNNING))


WAS_INITIALIZED = make_status(conditions=(condition("Initialized"),))
NOT_INITIALIZED = "ContainersNotInitialized"


@pytest.mark.parametrize(
    ("init", "app", "statuses", "phase", "old", "gate", "expected"),
    [
        pytest.param(["a", "b"], [], None, "Running", None, True, UNKNOWN[:2], id="I1 not known, two init"),
        pytest.param([], [], (), "Running", None, True, ("True", ""), id="I2 no init"),
        pytest.param([], [], None, "Running", None, True, ("True", ""), id="no init, statuses not known"),
        pytest.param(["a"], [], (), "Running", None, True, ("False", NOT_INITIALIZED), id="I3 no status"),
        pytest.param(["a", "b"], [], (ready("a"), ready("b")), "Running", None, True, ("True", ""), id="I4 both ready"),
        pytest.param(
            ["a", "b"], [], (ready("a"),), "Running", None, True, ("False", NOT_INITIALIZED), id="I5 one missing"
        ),
        pytest.param(
            ["a", "b"],
            [],
            (ready("a"), running("b")),
            "Running",
            None,
            True,
            ("False", NOT_INITIALIZED),
            id="I6 one unready",
        ),
        pytest.param(["a"], [], (running("a"),), "Succeeded", None, True, ("True", "PodCompleted"), id="I7 succeeded"),
        pytest.param(
            [sidecar("s")],
            ["app"],
            (running("s", started=False), waiting("app")),
            "Pending",
            None,
            True,
            ("False", NOT_INITIALIZED),
            id="I8 sidecar not started",
        ),
        pytest.param(
            [sidecar("s")],
            ["app"],
            (running("s", started=True), waiting("app")),
            "Pending",
            None,
            True,
            ("True", ""),
            id="I9 sidecar started",
        ),
        pytest.param(
            [sidecar("s")],
            ["app"],
            (running("s", started=False), running("app")),
            "Running",
            None,
            True,
            ("True", ""),
            id="I10 sidecar not started, but the app runs",
        ),
        pytest.param(
            ["a"],
            ["app"],
            (waiting("a"), exited("app")),
            "Running",
            None,
            True,
            ("True", ""),
            id="I11 init waits, but the app has ended",
        ),
        pytest.param(["a"], [], (), "Running", WAS_INITIALIZED, True, ("True", ""), id="I12 once initialized, gate on"),
        pytest.param(["a"], [], (), "Running", WAS_INITIALIZED, False, ("False", NOT_INITIALIZED), id="I13 gate off"),
        pytest.param(
            ["a"],
            [],
            (),
            "Running",
            make_status(conditions=(condition("Initialized", "False"),)),
            True,
            ("False", NOT_INITIALIZED),
            id="I13 was not initialized",
        ),
    ],
)
def test_initialized(init, app, statuses, phase, old, gate, expected):
    pod = make_pod(*app, init=init)
    made = conditions.initialized_condition(
        pod, old, statuses, PodPhase(phase), Semantics(restart_all_containers_on_container_exits=gate)
    )
    assert expected == words(made)[:2]


def test_initialized_names_unknown_and_incomplete_containers():
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
def test_ready_to_start_containers(sandboxes, host_network, expected):
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
def test_observed_generation_of_a_condition(old, expected):
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
def test_s97_who_owns_a_condition(kind, expected):
    owned, shared = conditions.is_owned(kind), conditions.is_shared(kind)
    assert expected == ("owned" if owned else "shared" if shared else "foreign")


def test_s96_a_condition_of_a_new_type_is_appended():
    assert (condition("A"), condition("B")) == conditions.replace_or_append((condition("A"),), condition("B"))


def test_s96_a_condition_of_a_known_type_is_replaced_in_its_place():
    made = conditions.replace_or_append((condition("A"), condition("B")), condition("A", "False"))
    assert (condition("A", "False"), condition("B")) == made


GATED = make_pod("app", init=(sidecar("s"),), readiness_gates=("gate",))


def api_status(*, ready_word, gate="True", message=""):
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
def test_readiness_is_reconciled_when_a_gate_and_ready_disagree(pod, status, expected):
    assert expected is conditions.need_to_reconcile_readiness(replace(pod, status=status), Semantics())


def test_s102_without_its_fix_a_ready_pod_with_gate_and_sidecar_is_synced_at_each_status():
    as_upstream = Semantics(fix_readiness_without_sidecars=False)
    pod = replace(GATED, status=api_status(ready_word="True"))
    assert conditions.need_to_reconcile_readiness(pod, as_upstream) is True
