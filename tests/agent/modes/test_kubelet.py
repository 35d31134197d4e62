"""Mode kubelet put together and not started: what the settings choose reaches the rooms that it is for."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent import settings
from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.generator import EventGenerator
from agent.kubelet.prober.manager import ProberManager
from agent.kubelet.runtime.process import ProcessRuntime
from agent.modes import kubelet
from agent.probe.result import ProbeErrored
from agent.processes.command import Completed, ExecTimeout
from agent.wire.model import Container, ExecAction, PodStatus, Probe, ProbeType, Result
from agent.wire.semantics import Semantics
from kube.auth import Connection, NoToken
from tests.agent.kubelet.pleg.builders import ScriptedRuntime, made
from tests.agent.kubelet.status.builders import make_pod


@pytest.mark.parametrize(
    ("compat", "expected"),
    [pytest.param("current", Result.FAILURE, id="1.36: it failed"), pytest.param("v1.16", None, id="1.16: no result")],
)
def test_cm11_a_command_of_a_probe_that_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compat: str, expected: Result | None
) -> None:
    def takes_too_long(_self: ProcessRuntime, _id: str, command: Sequence[str], timeout_s: float) -> Completed:
        raise ExecTimeout(command, timeout_s)

    monkeypatch.setattr(ProcessRuntime, "exec", takes_too_long)
    container = Container("c", readiness_probe=Probe(ExecAction(("sleep", "9"))))
    try:
        made = prober(tmp_path, compat)._context.probe(
            ProbeType.READINESS, make_pod(container), PodStatus(), container, "process://c"
        )
    except ProbeErrored:
        made = None
    assert expected == made


def prober(folder: Path, compat: str) -> ProberManager:
    text = f"mode: kubelet\nkubelet: {{nodeName: n, podCIDR: 127.20.1.0/24, rootDir: {folder}, compat: {compat}}}"
    services = kubelet.assemble(settings.parse(text.encode(), {}), Connection("http://127.0.0.1:1", None, NoToken()))
    (found,) = (service for service in services if isinstance(service, ProberManager))
    return found


@pytest.mark.parametrize(
    ("listed_at", "expected"),
    [pytest.param(None, 0.0, id="no list yet"), pytest.param(40.0, 990.0, id="ten seconds ago")],
)
def test_pl51_when_the_last_list_began(listed_at: float | None, expected: float) -> None:
    events = EventGenerator(ScriptedRuntime(), Cache(), lambda _event: True, events_come=None, semantics=Semantics())
    events._relist.listed_at = listed_at
    told = {family.name: family for family in kubelet.pleg_families(events, 1000.5, 50.0)}
    assert [({}, expected)] == list(told["kubelet_pleg_last_seen_seconds"].samples)


def test_pl52_what_runs_is_told_by_state() -> None:
    runtime = ScriptedRuntime()
    runtime.pods = {"p": made("p", "c1=r c2=r c3=x s1=S"), "q": made("q", "c4=c s2=s")}
    events = EventGenerator(runtime, Cache(), lambda _event: True, events_come=None, semantics=Semantics())
    events.turn()
    told = {family.name: list(family.samples) for family in kubelet.pleg_families(events, 0.0, 0.0)}
    assert [({}, 1.0)] == told["kubelet_running_pods"]
    states = {"created": 1.0, "running": 2.0, "exited": 1.0, "unknown": 0.0}
    assert states == {labels["container_state"]: count for labels, count in told["kubelet_running_containers"]}
