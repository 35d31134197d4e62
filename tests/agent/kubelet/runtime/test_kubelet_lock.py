"""Whether a kubelet answers on this node."""

import socket

import pytest

from agent.kubelet.runtime.kubelet_lock import KubeletLock
from tools.kit.clock import Clock


def test_cw16_who_takes_connections_is_there_even_if_it_says_nothing() -> None:
    clock = Clock()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/healthz"
        guard = KubeletLock(url, monotonic=clock)
        assert f"a kubelet answers at {url}: " in guard.refusal()
    assert guard.refusal(), "it is looked for once a second"
    clock.time += 1.0
    assert "" == guard.refusal()


@pytest.mark.parametrize(
    "url",
    [
        pytest.param(None, id="none is looked for"),
        pytest.param("http://127.0.0.1:1/healthz", id="nobody listens"),
    ],
)
def test_without_one_there_is_no_refusal(url: str | None) -> None:
    assert "" == KubeletLock(url).refusal()
