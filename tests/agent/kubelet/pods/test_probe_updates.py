"""Which probe result changes what: the consumers of syncLoopIteration."""

from collections.abc import Callable

import pytest

from agent.kubelet.pods.probe_updates import ProbeUpdates
from agent.wire.model import ProbeUpdate, Result
from agent.wire.semantics import Semantics


class Recorder:
    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def set_container_readiness(self, uid: str, container_id: str, ready: bool) -> None:
        self.calls.append(("ready", uid, container_id, ready))

    def set_container_startup(self, uid: str, container_id: str, started: bool) -> None:
        self.calls.append(("started", uid, container_id, started))

    def sync(self, uid: str) -> None:
        self.calls.append(("sync", uid))


SYNC = ("sync", "uid")


@pytest.mark.parametrize(
    ("listener", "result", "expected"),
    [
        pytest.param(ProbeUpdates.readiness, Result.SUCCESS, [("ready", "uid", "id", True), SYNC], id="ready"),
        pytest.param(ProbeUpdates.readiness, Result.FAILURE, [("ready", "uid", "id", False), SYNC], id="not ready"),
        pytest.param(ProbeUpdates.startup, Result.SUCCESS, [("started", "uid", "id", True), SYNC], id="started"),
        pytest.param(ProbeUpdates.startup, Result.UNKNOWN, [("started", "uid", "id", False), SYNC], id="not yet"),
        pytest.param(ProbeUpdates.startup, Result.FAILURE, [("started", "uid", "id", False), SYNC], id="never started"),
        pytest.param(ProbeUpdates.liveness, Result.FAILURE, [SYNC], id="liveness failed: it is ended by the sync"),
        pytest.param(ProbeUpdates.liveness, Result.SUCCESS, [], id="liveness passed"),
    ],
)
def test_what_an_update_brings_about(
    listener: Callable[[ProbeUpdates, ProbeUpdate], None], result: Result, expected: list[tuple[object, ...]]
) -> None:
    recorder = Recorder()
    listener(ProbeUpdates(recorder, recorder.sync, Semantics()), ProbeUpdate("id", result, "uid"))
    assert expected == recorder.calls
