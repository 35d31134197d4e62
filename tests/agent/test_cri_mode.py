"""Mode kubelet over the CRI, put together and not started."""

import sys
from pathlib import Path

import pytest

from agent import rpc, settings
from agent.modes.kubelet import in_runtime, pressure_watch
from agent.pods.inbox import Inbox
from agent.semantics import Semantics
from component.lifecycle import StartFailed
from tests.fakes.cri import Runtime
from tests.kit.waiting import wait_until


def section(folder: Path, more: str = "", socket: str = "/none.sock") -> settings.Kubelet:
    cri = f"{{address: 192.0.2.7, socket: {socket}}}"
    text = f"mode: kubelet\nkubelet: {{nodeName: n, rootDir: {folder}, cri: {cri}{more}}}"
    found = settings.parse(text.encode(), {}).kubelet
    assert found is not None
    return found


def test_the_runtime_of_the_settings(tmp_path: Path) -> None:
    node = section(tmp_path)
    assert node.cri is not None
    ran = in_runtime(node, node.cri, Inbox(), Semantics())
    causes = ran.causes(0.0)
    ran.runtime.stop()
    assert ("192.0.2.7", False, "") == (ran.runtime.host_ip, ran.events.evented, ran.version())
    assert ["container runtime is down"] == causes


def test_without_grpc_it_does_not_start_and_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    rpc._load.cache_clear()
    node = section(tmp_path)
    assert node.cri is not None
    with pytest.raises(StartFailed, match=r"install readygate\[grpc\]"):
        in_runtime(node, node.cri, Inbox(), Semantics())
    rpc._load.cache_clear()


def test_ep10_a_full_file_system_of_images_is_pressure_on_disks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runtime = Runtime(tmp_path)
    node = section(tmp_path, ", evictionHard: {imagefs.available: 99.999%}", runtime.socket)
    assert node.cri is not None
    ran = in_runtime(node, node.cri, Inbox(), Semantics())
    watch = pressure_watch(node, ran.folders)
    watch.turn()
    before = watch.conditions
    (refused,) = [record.error for record in caplog.records]
    runtime.start()
    try:
        runtime.says(ImageFsInfo={"imageFilesystems": [{"fsId": {"mountpoint": str(tmp_path)}}]})
        # The library connects again a moment later.
        wait_until(
            lambda: watch.turn() and {"DiskPressure"} == watch.conditions, lambda: watch.conditions, timeout_s=60
        )
        assert set() == before
        assert f"ImageFsInfo on {runtime.socket}: no such socket: start the container runtime" in refused
    finally:
        ran.runtime.stop()
        runtime.process.kill()
