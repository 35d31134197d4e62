"""The check `runtime`: which call has no answer, and what the runtime says of itself."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent import settings
from agent.checks.builtin.runtime import Check, Settings, judged, loaded_networks
from agent.checks.catalogue import check_spec
from agent.checks.engine import CheckEngine
from agent.checks.state import CheckState, Finding
from agent.cri.base import CriError, RuntimeCondition, RuntimeStatus, Trouble, Version
from agent.wire.containers import ContainerPhase, RuntimeContainer, RuntimePod
from tools.kit.cases import cases
from tools.kit.clock import Clock

failed, passed, unknown, warned = (
    partial(Finding, state) for state in (CheckState.FAILED, CheckState.PASSED, CheckState.UNKNOWN, CheckState.WARNED)
)

SOCKET = "/run/containerd/containerd.sock"
CALLS = ("Version", "Status", "ListPodSandbox", "ContainerStatus")
READY = (RuntimeCondition("RuntimeReady", True), RuntimeCondition("NetworkReady", True))


class Runtime:
    """Answers as a Reader; a call may have a trouble."""

    def __init__(self, status: RuntimeStatus, **troubles: Trouble) -> None:
        self._status = status
        self.troubles = troubles
        self.asked: list[str] = []
        self.socket = SOCKET

    def _call(self, name: str) -> None:
        self.asked.append(name)
        if (trouble := self.troubles.get(name)) is not None:
            raise CriError(name, self.socket, trouble, within_s=5.0)

    def version(self) -> Version:
        self._call("Version")
        return Version("containerd", "2.1.4", "v1")

    def status(self, *, verbose: bool = False) -> RuntimeStatus:
        assert verbose
        self._call("Status")
        return self._status

    def list_pods(self) -> list[RuntimePod]:
        self._call("ListPodSandbox")
        containers = [RuntimeContainer(f"containerd://{n}", "c", ContainerPhase.RUNNING, float(n)) for n in (1, 3, 2)]
        return [RuntimePod("a", containers=tuple(containers)), RuntimePod("b")]

    def container(self, container_id: str) -> None:
        assert container_id == "containerd://3"
        self._call("ContainerStatus")

    def close(self) -> None:
        self.asked.append("close")


def find(runtime: Runtime, **settings: Any) -> Finding:
    return Check(Settings(**settings), 5.0, lambda _socket, _deadline_s: runtime)()  # type: ignore[arg-type,return-value]


def test_each_call_is_made_and_the_newest_container_looked_at() -> None:
    runtime = Runtime(RuntimeStatus(READY))
    assert Finding(CheckState.PASSED, "containerd 2.1.4, 2 pods") == find(runtime)
    assert list(CALLS) == runtime.asked


@pytest.mark.parametrize("call", CALLS)
def test_the_call_that_hangs_is_named_and_no_other_is_made_after_it(call: str) -> None:
    runtime = Runtime(RuntimeStatus(READY), **{call: Trouble.HANGS})
    found = find(runtime)
    assert found.state is CheckState.HUNG
    assert found.output.startswith(f"{call} on {SOCKET}: no answer within 5s: ")
    assert [*CALLS[: CALLS.index(call) + 1], "close"] == runtime.asked


@pytest.mark.parametrize(
    ("trouble", "state"),
    [
        (Trouble.NO_SOCKET, CheckState.FAILED),
        (Trouble.NOBODY_LISTENS, CheckState.FAILED),
        (Trouble.WENT_AWAY, CheckState.FAILED),
        (Trouble.GARBAGE, CheckState.FAILED),
        (Trouble.REFUSED, CheckState.FAILED),
        (Trouble.NOT_OFFERED, CheckState.FAILED),
        (Trouble.NO_RIGHTS, CheckState.UNKNOWN),
        (Trouble.NO_PACKAGES, CheckState.UNKNOWN),
    ],
)
def test_what_is_the_runtimes_fault_and_what_ours(trouble: Trouble, state: CheckState) -> None:
    assert state is find(Runtime(RuntimeStatus(READY), Version=trouble)).state


@cases(
    "conditions, expected",
    ("it has answered", READY, ("warned", f"ListPodSandbox on {SOCKET}: the answer is larger")),
    ("what it says of itself counts", READY[:1], ("unknown", "the runtime does not say NetworkReady")),
)
def test_more_pods_than_are_read_of_one_list_close_no_node(
    conditions: tuple[RuntimeCondition, ...], expected: tuple[str, str]
) -> None:
    """As of 500 pods with long annotations: an hour of what is unknown would."""
    runtime = Runtime(RuntimeStatus(conditions), ListPodSandbox=Trouble.TOO_LARGE)
    found = find(runtime)
    assert expected == (found.state, found.output[: len(expected[1])])
    assert list(CALLS[:3]) == runtime.asked, "and the connection stays"


def test_who_gave_no_answer_is_connected_to_anew_and_who_did_is_not() -> None:
    runtimes = [Runtime(RuntimeStatus(READY), Version=Trouble.NOBODY_LISTENS), Runtime(RuntimeStatus(READY))]
    connected = iter(runtimes)
    check = Check(Settings(), 5.0, lambda _socket, _deadline_s: next(connected))  # type: ignore[arg-type,return-value]
    found = [check().state for _ in range(3)]
    assert [CheckState.FAILED, CheckState.PASSED, CheckState.PASSED] == found
    assert [["Version", "close"], [*CALLS, *CALLS]] == [runtime.asked for runtime in runtimes]


@pytest.mark.parametrize(
    ("call_s", "expected"),
    [
        pytest.param(4.9, "passed", id="each call within its time"),
        pytest.param(9.0, "hung", id="calls that none of them may take"),
    ],
)
def test_a_runtime_that_is_slow_with_each_call_does_not_hang(call_s: float, expected: str) -> None:
    """A node of 500 pods under load: all of them together take longer than one may."""
    clock, runtime = Clock(0.0), Runtime(RuntimeStatus(READY))

    def run() -> Finding:
        clock.time += (len(CALLS) + 1) * call_s  # a list of pods is two
        return find(runtime)

    spec = check_spec(msgspec.convert({"name": "runtime", "runtime": {}, "failureThreshold": 1}, settings.Check))
    engine = CheckEngine([replace(spec, run=run)], monotonic=clock)
    (worker,) = engine._workers
    worker._turn()
    assert expected == engine.statuses()[0].state


def test_the_way_back_is_an_answer() -> None:
    runtime = Runtime(RuntimeStatus(READY), Status=Trouble.HANGS)
    check = Check(Settings(), 5.0, lambda _socket, _deadline_s: runtime)  # type: ignore[arg-type,return-value]
    assert check().state is CheckState.HUNG
    runtime.troubles.clear()
    assert check().state is CheckState.PASSED


OFFERS_NONE, DEAD, HANGS = (
    {"Version": trouble} for trouble in (Trouble.NOT_OFFERED, Trouble.NOBODY_LISTENS, Trouble.HANGS)
)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param({}, {}, ["one passed"] * 3, id="both answer: the first"),
        pytest.param(OFFERS_NONE, {}, ["two passed"] * 3, id="the containerd of a Docker beside CRI-O"),
        pytest.param(DEAD, {}, ["two passed"] * 3, id="a socket that a runtime has left behind"),
        pytest.param(HANGS, {}, ["one hung"] * 3, id="one that hangs is no other's place"),
        pytest.param(OFFERS_NONE, OFFERS_NONE, ["one warned"] * 3, id="neither offers the CRI: it is elsewhere"),
        pytest.param(OFFERS_NONE, DEAD, ["two failed"] * 3, id="the one that does is not there"),
    ],
)
def test_of_several_sockets_the_first_that_answers_counts(
    tmp_path: Path, first: dict[str, Trouble], second: dict[str, Trouble], expected: list[str]
) -> None:
    runtimes = {"one": Runtime(RuntimeStatus(READY), **first), "two": Runtime(RuntimeStatus(READY), **second)}
    for name, runtime in runtimes.items():
        (tmp_path / name).touch()
        runtime.socket = name
    check = Check(
        Settings(socket=tuple(str(tmp_path / name) for name in runtimes)),
        5.0,
        lambda socket, _deadline_s: runtimes[Path(socket).name],  # type: ignore[arg-type,return-value]
    )

    def found() -> str:
        state, text = (finding := check()).state, finding.output
        named = next((name for name in runtimes if f" on {name}:" in text), "")
        return f"{named or next(n for n, r in runtimes.items() if 'Status' in r.asked)} {state}"

    assert expected == [found() for _ in range(3)]


def test_the_socket_that_has_answered_counts_when_it_does_no_more(tmp_path: Path) -> None:
    runtimes = {"one": Runtime(RuntimeStatus(READY), **DEAD), "two": Runtime(RuntimeStatus(READY))}
    for name in runtimes:
        (tmp_path / name).touch()
    check = Check(
        Settings(socket=tuple(str(tmp_path / name) for name in runtimes)),
        5.0,
        lambda socket, _deadline_s: runtimes[Path(socket).name],  # type: ignore[arg-type,return-value]
    )
    before = check().state
    runtimes["one"].troubles, runtimes["two"].troubles = {}, DEAD
    assert (CheckState.PASSED, CheckState.FAILED) == (before, check().state)


def status(
    network: RuntimeCondition = READY[1], loaded: str = "OK", names: tuple[str, ...] = ("pods",)
) -> RuntimeStatus:
    """As containerd 2 shows it."""
    networks = [{"Config": {"Name": name, "Plugins": []}, "IFName": "eth0"} for name in ("cni-loopback", *names)]
    configuration = {"PluginDirs": ["/opt/cni/bin"], "PluginConfDir": "/etc/cni/net.d", "Networks": networks}
    return RuntimeStatus((READY[0], network), {"cniconfig": json.dumps(configuration), "lastCNILoadStatus": loaded})


NOT_READY = RuntimeCondition("NetworkReady", False, "NetworkPluginNotReady", "cni plugin not initialized")


NO_CNI = "NetworkPluginNotReady: cni plugin not initialized"
BROKEN = RuntimeStatus((RuntimeCondition("RuntimeReady", False, "R", "m"), READY[1]))


@cases(
    "said, named, expected",
    ("loaded what the file says", status(), "pods", passed("fine")),
    ("the file is not compared", status(), "", passed("fine")),
    ("a runtime that tells no more", RuntimeStatus(READY), "pods", passed("fine")),
    ("no network", status(NOT_READY), "pods", failed(f"the runtime has no network: {NO_CNI}")),
    ("not ready itself", BROKEN, "", failed("the runtime is not ready: R: m")),
    (
        "works on with what it had",
        status(loaded="failed to load CNI config"),
        "pods",
        warned("the newest network configuration could not be loaded: failed to load CNI config"),
    ),
    ("a file it has not loaded", status(), "other", warned("the files name the network other, loaded is pods")),
    ("silent", RuntimeStatus(READY[:1]), "", unknown("the runtime does not say NetworkReady")),
)
def test_what_the_runtime_says_of_itself(said: RuntimeStatus, named: str, expected: Finding) -> None:
    assert expected == judged(said, "fine", named)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"Networks": null}',
        '{"Networks": [{}]}',
        '{"Networks": [{"Config": 1}]}',
        pytest.param("[" * 100_000, id="one without a bottom"),
    ],
)
def test_a_configuration_of_another_shape_says_nothing(text: str) -> None:
    assert loaded_networks({"cniconfig": text}) == []


def test_the_name_in_the_file_that_counts_is_compared(tmp_path: Path) -> None:
    (tmp_path / "10-a.conflist").write_text('{"name": "new", "plugins": [{"type": "bridge"}]}')
    expected = Finding(CheckState.WARNED, "the files name the network new, loaded is pods")
    assert expected == find(Runtime(status()), conf_dir=str(tmp_path))
    (tmp_path / "10-a.conflist").write_text("{")
    assert find(Runtime(status()), conf_dir=str(tmp_path)).state is CheckState.PASSED, (
        "the check cni says what is wrong"
    )


def test_nobody_at_the_socket_has_failed(tmp_path: Path) -> None:
    """Through gRPC itself."""
    found = Check(Settings(str(tmp_path / "none.sock")), 20.0)()
    assert found.state is CheckState.FAILED
    assert "no such socket: start the container runtime" in found.output
