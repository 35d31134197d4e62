"""Mode kubelet put together and not started: what the settings choose reaches the rooms that it is for."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent import settings
from agent.model import Container, ExecAction, PodStatus, Probe, ProbeType, Result
from agent.modes import kubelet
from agent.probe.outcome import ProbeErrored
from agent.prober.manager import ProberManager
from agent.processes.command import Completed, ExecTimeout
from agent.runtime.process import ProcessRuntime
from kube.auth import Connection, NoToken
from tests.agent.status.builders import make_pod


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
