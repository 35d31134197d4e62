"""Sockets in the network of the health pod: found by the container runtime, entered by a thread that ends."""

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from agent.checks.surroundings import NoPodNetwork
from agent.cri.base import CriError, Reader, Trouble
from agent.modes.sandbox_sockets import LOOK_S, SandboxSockets, in_namespace
from tools.kit.ability import cannot_run
from tools.kit.clock import Clock
from tools.kit.waiting import wait_until

UID = "11111111-2222-3333-4444-555555555555"


class Runtime:
    """The one call that is used. paths: by uid."""

    def __init__(self, **paths: str) -> None:
        self.paths = paths
        self.asked = 0
        self.error: CriError | None = None

    def network_namespace(self, uid: str) -> str:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.paths.get(uid, "")


def sockets(
    runtime: Runtime | None, pod: tuple[str, bool] | None = (UID, False), clock: Clock | None = None
) -> tuple[SandboxSockets, list[str]]:
    entered: list[str] = []

    def enter(path: str, make: Callable[[], socket.socket]) -> socket.socket:
        entered.append(path)
        return make()

    connect = None if runtime is None else lambda: cast("Reader", runtime)
    return SandboxSockets(lambda: pod, connect, enter, clock or Clock()), entered


@pytest.mark.parametrize("named", ["/run/netns/cni-1", "/var/run/netns/cni-1"])
def test_a_socket_is_made_in_the_network_of_the_health_pod(named: str) -> None:
    opened, entered = sockets(Runtime(**{UID: named}))
    opened(socket.AF_INET, socket.SOCK_STREAM).close()
    assert entered == ["/run/netns/cni-1"]


def test_the_runtime_is_asked_seldom_and_again_for_another_pod() -> None:
    runtime, clock = Runtime(**{UID: "/run/netns/cni-1"}), Clock()
    opened, _ = sockets(runtime, clock=clock)
    for _ in range(3):
        opened(socket.AF_INET, socket.SOCK_DGRAM).close()
    assert runtime.asked == 1
    clock.time += LOOK_S + 1
    opened(socket.AF_INET, socket.SOCK_DGRAM).close()
    assert runtime.asked == 2


@pytest.mark.parametrize(
    ("runtime", "pod", "expected"),
    [
        pytest.param(None, (UID, False), "node.criSocket names no container runtime", id="no socket of a runtime"),
        pytest.param(Runtime(), (UID, True), "the health pod runs in the host's network", id="the host's network"),
    ],
)
def test_without_a_pod_network_it_is_not_applicable(runtime: Runtime | None, pod: Any, expected: str) -> None:
    opened, _ = sockets(runtime, pod)
    with pytest.raises(NoPodNetwork, match=expected):
        opened(socket.AF_INET, socket.SOCK_STREAM)


@pytest.mark.parametrize(
    ("runtime", "pod", "expected"),
    [
        pytest.param(Runtime(), None, "this node has no health pod", id="no health pod yet"),
        pytest.param(Runtime(), (UID, False), "names no network of the health pod", id="no sandbox yet"),
    ],
)
def test_what_is_not_there_yet_is_unknown(runtime: Runtime, pod: Any, expected: str) -> None:
    opened, _ = sockets(runtime, pod)
    with pytest.raises(OSError, match=expected):
        opened(socket.AF_INET, socket.SOCK_STREAM)


def test_a_runtime_that_does_not_answer_leaves_it_unknown() -> None:
    runtime = Runtime()
    runtime.error = CriError("PodSandboxStatus", "/run/x.sock", Trouble.HANGS, within_s=1.0)
    opened, _ = sockets(runtime)
    with pytest.raises(OSError, match="the network of the health pod is unknown"):
        opened(socket.AF_INET, socket.SOCK_STREAM)


def test_a_namespace_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        in_namespace(str(tmp_path / "gone"), lambda: socket.socket())


def test_a_file_that_is_no_namespace_is_an_error_and_the_caller_stays_where_it_is(tmp_path: Path) -> None:
    before = Path("/proc/thread-self/ns/net").readlink()
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="network namespace"):
        in_namespace(str(tmp_path / "file"), lambda: socket.socket())
    assert Path("/proc/thread-self/ns/net").readlink() == before


def test_a_socket_is_made_there_and_the_caller_stays_where_it_is() -> None:
    if os.geteuid() != 0:
        cannot_run("only root may enter a network namespace")
    own = Path("/proc/thread-self/ns/net")
    before, inside = own.readlink(), list[Path]()

    def make() -> socket.socket:
        inside.append(own.readlink())
        return socket.socket()

    with subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE) as holder:
        there = Path(f"/proc/{holder.pid}/ns/net")
        wait_until(lambda: there.readlink() != before, "the other namespace is there")
        in_namespace(str(there), make).close()
        assert (inside, own.readlink()) == ([there.readlink()], before)
        holder.communicate()
