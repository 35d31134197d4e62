"""Sockets in the network of the health pod, for an agent that runs beside it (mode node)."""

import ctypes
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from agent.checks.surroundings import NoPodNetwork
from agent.cri.base import CriError, Reader

CLONE_NEWNET = 0x40000000
LOOK_S = 10.0  # how old the path may be: a pod that is replaced has another
DEADLINE_S = 1.0


class SandboxSockets:
    """An OpenSocket. health_pod: uid of the health pod and whether it has the host's network; None while there is none.
    connect: to the container runtime, None where no socket of it is named."""

    def __init__(
        self,
        health_pod: Callable[[], tuple[str, bool] | None],
        connect: Callable[[], Reader] | None,
        enter: Callable[[str, Callable[[], socket.socket]], socket.socket] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._health_pod = health_pod
        self._connect = connect
        self._enter = enter or in_namespace
        self._monotonic = monotonic
        self._runtime: Reader | None = None
        self._known = ("", "", 0.0)  # uid, path, when

    def __call__(self, family: int, kind: int) -> socket.socket:
        if self._connect is None:
            raise NoPodNetwork("node.criSocket names no container runtime, which knows the network of the health pod")
        pod = self._health_pod()
        if pod is None:
            raise OSError("this node has no health pod whose network could be entered")
        uid, has_hosts_network = pod
        if has_hosts_network:
            raise NoPodNetwork("the health pod runs in the host's network, which is no pod's")
        return self._enter(self._path(uid), lambda: socket.socket(family, kind | socket.SOCK_CLOEXEC))

    def _path(self, uid: str) -> str:
        known, path, at = self._known
        if known != uid or self._monotonic() - at > LOOK_S:
            try:
                self._runtime = self._runtime or (self._connect() if self._connect else None)
                path = self._runtime.network_namespace(uid) if self._runtime else ""
            except CriError as e:
                raise OSError(f"the network of the health pod is unknown: {e}") from e
            if not path:
                raise OSError("the container runtime names no network of the health pod")
            # The same folder on each distribution; only this name of it is in the image's root file system.
            path = path.replace("/var/run/", "/run/", 1) if path.startswith("/var/run/") else path
            self._known = uid, path, self._monotonic()
        return path


def in_namespace(path: str, make: Callable[[], socket.socket]) -> socket.socket:
    """What `make` returns in that network namespace. A socket stays in the namespace where it was made. The thread that
    enters ends at once, so none ever goes on in a wrong one. Raises OSError."""
    made: list[socket.socket | OSError] = []

    def enter() -> None:
        try:
            with Path(path).open("rb") as file:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(file.fileno(), CLONE_NEWNET):
                    number = ctypes.get_errno()
                    raise OSError(number, f"network namespace {path}: {os.strerror(number)}")
            made.append(make())
        except OSError as e:
            made.append(e)

    thread = threading.Thread(target=enter, name="pod-network", daemon=True)
    thread.start()
    thread.join()
    (found,) = made
    if isinstance(found, OSError):
        raise found
    return found
