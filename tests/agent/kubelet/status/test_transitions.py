"""What is over for good does not come back: rows S84-S87 of status_manager_test.go of v1.36.3."""

from dataclasses import replace

import pytest

from agent.kubelet.status import merge
from agent.wire.model import Container, ContainerStatus, PodStatus, RestartPolicy, RestartRule
from agent.wire.semantics import Semantics
from tests.agent.kubelet.status.builders import exited, make_pod, make_status, running, sidecar

POD = make_pod("c1")
RULE = (RestartRule("Restart", "In", (42,)),)
RESTART_ALL = (RestartRule("RestartAllContainers", "In", (42,)),)
ILLEGAL = "terminated container c1 attempted illegal transition to non-terminated state"


def app(status: ContainerStatus) -> PodStatus:
    return make_status(container_statuses=(status,))


@pytest.mark.parametrize(
    ("policy", "exit_code", "expected"),
    [
        pytest.param("Always", 0, "", id="Always may restart"),
        pytest.param("Never", 1, ILLEGAL, id="S84 Never may not"),
        pytest.param("OnFailure", 1, "", id="S85 OnFailure after an error"),
        pytest.param("OnFailure", 0, ILLEGAL, id="S85 OnFailure after success"),
    ],
)
def test_an_ended_container_comes_back(policy: str, exit_code: int, expected: str) -> None:
    pod = replace(POD, restart_policy=RestartPolicy(policy))
    assert expected == merge.illegal_transition(app(exited("c1", exit_code)), app(running("c1")), pod, Semantics())


@pytest.mark.parametrize(
    ("rules", "exit_code", "expected"),
    [
        pytest.param(RULE, 42, "", id="a rule allows it"),
        pytest.param(RULE, 1, ILLEGAL, id="no rule matches"),
        pytest.param(RESTART_ALL, 1, "", id="the pod may restart in place"),
    ],
)
def test_rules_allow_a_container_to_come_back(rules: tuple[RestartRule, ...], exit_code: int, expected: str) -> None:
    container = Container("c1", restart_policy=RestartPolicy.NEVER, restart_rules=rules)
    pod = make_pod(container, restart_policy=RestartPolicy.NEVER)
    assert expected == merge.illegal_transition(app(exited("c1", exit_code)), app(running("c1")), pod, Semantics())


@pytest.mark.parametrize(
    ("rules", "semantics"),
    [
        pytest.param(RULE, Semantics(container_restart_rules=False), id="ContainerRestartRules off"),
        pytest.param(
            RESTART_ALL, Semantics(restart_all_containers_on_container_exits=False), id="RestartAllContainers off"
        ),
    ],
)
def test_with_its_gate_off_a_rule_allows_nothing(rules: tuple[RestartRule, ...], semantics: Semantics) -> None:
    container = Container("c1", restart_policy=RestartPolicy.NEVER, restart_rules=rules)
    pod = make_pod(container, restart_policy=RestartPolicy.NEVER)
    assert merge.illegal_transition(app(exited("c1", 42)), app(running("c1")), pod, semantics) == ILLEGAL


def init(status: ContainerStatus) -> PodStatus:
    return make_status(init_container_statuses=(status,))


@pytest.mark.parametrize(
    ("spec", "old", "new", "expected"),
    [
        pytest.param(sidecar("i"), exited("i", 1), running("i"), "", id="S86 a sidecar comes back"),
        pytest.param(
            "i",
            exited("i", 1),
            running("i"),
            "terminated init container i attempted illegal transition to non-terminated state",
            id="a regular one does not",
        ),
        pytest.param(
            "other",
            exited("i"),
            exited("i"),
            "found mismatch between pod spec and status, container: i",
            id="S87 another name than the spec's",
        ),
        pytest.param("i", exited("i", 1), exited("i", 1), "", id="stays ended"),
    ],
)
def test_init_containers_that_come_back(
    spec: Container | str, old: ContainerStatus, new: ContainerStatus, expected: str
) -> None:
    pod = make_pod("app", init=(spec,), restart_policy=RestartPolicy.NEVER)
    assert expected == merge.illegal_transition(init(old), init(new), pod, Semantics())
