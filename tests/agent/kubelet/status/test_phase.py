"""Rows PH: TestPodPhaseWith* of pkg/kubelet/kubelet_pods_test.go of v1.36.3.

A row: id, pod policy, containers, expected phase, flags. `A B` app, `X Y` regular init, `S` sidecar. States: `-` no
status, r running, r+ running and started, ok ended 0, bad ended -1, e42 ended 42, w waiting, wl waiting after an end
with 0, wb after one with an error, wr after RestartingAllContainers. An own policy follows in brackets. Flags: init,
term.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from agent.kubelet.status.phase import REASON_RESTARTING_ALL, pod_phase
from agent.wire.model import (
    Container,
    ContainerRunning,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Pod,
    RestartPolicy,
    RestartRule,
)
from agent.wire.semantics import Semantics

RESTART_ALL = (RestartRule("RestartAllContainers", "In", (42,)),)

WAITS = ContainerWaiting()
STATES = {
    "r": (ContainerRunning(), None, None),
    "r+": (ContainerRunning(), None, True),
    "ok": (ContainerTerminated(0), None, None),
    "bad": (ContainerTerminated(-1), None, None),
    "e42": (ContainerTerminated(42), None, None),
    "w": (WAITS, None, None),
    "wl": (WAITS, ContainerTerminated(0), None),
    "wb": (WAITS, ContainerTerminated(-1), None),
    "wr": (WAITS, ContainerTerminated(137, REASON_RESTARTING_ALL), None),
    "none": (None, None, None),
}

ROWS = """
PH1 Always: A -, B - -> Pending
PH2 Always: A r, B r -> Running
PH3 Always: A ok, B ok -> Running
PH4 Always: A ok, B ok -> Succeeded term
PH5 Always: A ok, B bad -> Failed term
PH6 Always: A r, B ok -> Running
PH7 Always: A r, B - -> Pending
PH8 Always: A r, B w -> Pending
PH9 Always: A r, B wl -> Running
PH10 Always: X -, A -, B - -> Pending
PH11 Always: X r, A -, B - -> Pending
PH12 Always: X bad, A -, B - -> Pending
PH13 Always: X wl, A -, B - -> Pending
PH14 Always: X wb, A -, B - -> Pending
PH15 Always: X w, A -, B - -> Pending
PH16 Always: X ok, A r, B r -> Running
PH17 Always: S -, A -, B - -> Pending
PH18 Always: S r, A -, B - -> Pending
PH19 Always: S ok, A -, B - -> Pending
PH20 Always: S wl, A -, B - -> Pending
PH21 Always: S wb, A -, B - -> Pending
PH22 Always: S w, A -, B - -> Pending
PH23 Always: S r+, A r, B - -> Pending init
PH24 Always: S r+, A r, B r -> Running init
PH25 Always: S r, A r, B r -> Running init
PH26 Always: S ok, A r, B r -> Running init
PH27 Always: S wl, A r, B r -> Running init
PH28 Always: S bad, A ok, B ok -> Succeeded term init
PH29 Always: S ok, A ok, B ok -> Succeeded term init
PH30 Always: S r, A r, B r -> Pending
PH31 Always: X r, S r, A r -> Pending
PH32 Always: X r, S r, A ok -> Pending
PH33 Always: X ok, S r, A ok -> Pending
PH34 Always: X ok, S r, A ok -> Running init
PH35 Always: X ok, S r, A r -> Running init
PH36 Never: A -, B - -> Pending
PH37 Never: A r, B r -> Running
PH38 Never: A ok, B ok -> Succeeded
PH39 Never: A bad, B bad -> Failed
PH40 Never: A r, B ok -> Running
PH41 Never: A r, B - -> Pending
PH42 Never: A r, B w -> Pending
PH43 Never: X -, A -, B - -> Pending
PH44 Never: X r, A -, B - -> Pending
PH45 Never: X wl, A -, B - -> Pending
PH46 Never: X w, A -, B - -> Pending
PH47 Never: X bad, A -, B - -> Failed
PH48 Never: X wb, A -, B - -> Failed
PH49 Never: X ok, A r, B r -> Running
PH50 Never: S -, A -, B - -> Pending
PH51 Never: S r, A -, B - -> Pending
PH52 Never: S ok, A -, B - -> Pending
PH53 Never: S wl, A -, B - -> Pending
PH54 Never: S wb, A -, B - -> Pending
PH55 Never: S w, A -, B - -> Pending
PH56 Never: S r+, A r, B - -> Pending init
PH57 Never: S r+, A ok, B ok -> Running init
PH58 Never: S r, A ok, B ok -> Running init
PH59 Never: S ok, A ok, B ok -> Succeeded init
PH60 Never: S bad, A ok, B ok -> Succeeded init
PH61 Never: S wl, A ok, B ok -> Succeeded init
PH62 Never: S wb, A ok, B ok -> Succeeded init
PH63 OnFailure: A -, B - -> Pending
PH64 OnFailure: A r, B r -> Running
PH65 OnFailure: A ok, B ok -> Succeeded
PH66 OnFailure: A bad, B bad -> Running
PH67 OnFailure: A r, B ok -> Running
PH68 OnFailure: A r, B - -> Pending
PH69 OnFailure: A r, B w -> Pending
PH70 OnFailure: A r, B wl -> Running
PH71 Always: A bad[Never] -> Failed init
PH72 Always: A bad[OnFailure] -> Running init
PH73 Always: A bad[Always] -> Running init
PH74 Never: A ok[Always], B bad -> Running init
PH75 Always: A bad[Never], B ok[OnFailure] -> Failed init
PH76 Always: A ok[Never], B ok[OnFailure] -> Succeeded init
PH77 Always: X bad[Never], A - -> Failed init
PH78 Never: X bad[OnFailure], A - -> Pending init
PH79 Never: X bad[Always], A - -> Pending init
PH80 Never: A e42[rule] -> Running init
PH81 Never: X e42[rule] -> Pending init
PH82 Never: S e42, A w -> Pending init
PH83 Never: S e42, X w, A w -> Pending init
PH84 Never: A wr[rule] -> Running init
PH85 Never: X wr[rule], A - -> Pending init
PH86 Never: S wr, A w -> Pending init
PH87 Never: S wr, X -, A w -> Pending init
PH88 Never: X ok, A wr[rule] -> Running init
PH89 Never: X bad, A wr[rule] -> Failed init
PH90 Never: X e42[rule], A w -> Pending init
PH91 Never: X ok, A w -> Pending init
PH92 Never: S wr, A wr[rule] -> Running init
PH93 Never: S r, A wr[rule] -> Running init
PH94 Never: S r, X -, A w -> Pending init
no state of an app container counts as unknown Always: A none, B r -> Pending
no state of a sidecar counts as unknown Always: S none, A r -> Pending init
"""


def rows() -> Iterator[Any]:
    for line in ROWS.strip().splitlines():
        title, containers, phase, flags = re.fullmatch(r"(.+?): (.+) -> (\w+)(.*)", line).groups()
        name, policy = title.rsplit(" ", 1)
        parsed = [re.fullmatch(r"(\w) ([\w+-]+)(?:\[(\w+)\])?", part).groups() for part in containers.split(", ")]
        yield pytest.param(policy, parsed, flags.split(), phase, id=f"{name} {containers}")


def container(name: str, own: str | None) -> Container:
    if name == "S":
        return Container(name, restart_policy=RestartPolicy.ALWAYS)
    if own == "rule":
        return Container(name, restart_policy=RestartPolicy.NEVER, restart_rules=RESTART_ALL)
    return Container(name, restart_policy=RestartPolicy(own) if own else None)


@pytest.mark.parametrize(("policy", "containers", "flags", "expected"), list(rows()))
def test_phase(policy: str, containers: list[tuple[str, str, str | None]], flags: list[str], expected: str) -> None:
    specs = {name: container(name, own) for name, _, own in containers}
    pod = Pod(
        uid="u",
        name="p",
        namespace="n",
        restart_policy=RestartPolicy(policy),
        containers=tuple(spec for name, spec in specs.items() if name in "AB"),
        init_containers=tuple(spec for name, spec in specs.items() if name not in "AB"),
    )
    statuses = []
    for name, word, _ in containers:
        if word != "-":
            state, last, started = STATES[word]
            statuses.append(ContainerStatus(name, state=state, last_state=last, started=started))
    made = pod_phase(pod, statuses, pod_is_terminal="term" in flags, initialized="init" in flags, semantics=Semantics())
    assert expected == made.value


@pytest.mark.parametrize(
    ("policy", "words", "expected"),
    [
        pytest.param("Always", ("ok", "ok"), "Running", id="Always restarts all"),
        pytest.param("Never", ("ok", "bad"), "Failed", id="Never fails by one"),
        pytest.param("OnFailure", ("ok", "bad"), "Running", id="OnFailure restarts one"),
        pytest.param("OnFailure", ("ok", "ok"), "Succeeded", id="OnFailure succeeds"),
    ],
)
def test_phase_with_the_rules_gate_off(policy: str, words: tuple[str, str], expected: str) -> None:
    pod = Pod("u", "p", "n", containers=(Container("A"), Container("B")), restart_policy=RestartPolicy(policy))
    statuses = [ContainerStatus(name, state=STATES[word][0]) for name, word in zip("AB", words, strict=True)]
    made = pod_phase(
        pod, statuses, pod_is_terminal=False, initialized=True, semantics=Semantics(container_restart_rules=False)
    )
    assert expected == made.value


def test_a_static_pod_that_was_stopped_is_not_terminal() -> None:
    pod = Pod("u", "p", "n", containers=(Container("A"),), static=True)
    statuses = [ContainerStatus("A", state=ContainerTerminated(0))]
    assert pod_phase(pod, statuses, pod_is_terminal=True, initialized=True, semantics=Semantics()).value == "Running"
