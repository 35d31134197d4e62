"""Mode kubelet over the CRI, put together and not started."""

import sys
from pathlib import Path

import pytest

from agent import rpc, settings
from agent.modes.kubelet import in_runtime
from agent.pods.inbox import Inbox
from agent.semantics import Semantics
from component.lifecycle import StartFailed


def section(folder: Path) -> settings.Kubelet:
    text = f"mode: kubelet\nkubelet: {{nodeName: n, rootDir: {folder}, cri: {{address: '192.0.2.7'}}}}"
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
