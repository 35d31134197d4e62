"""gunicorn in the foreground around the status API. gunicorn.conf.py has the settings that never differ."""

import ctypes
import os
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gunicorn.app.base import Application

from component.text import REFERENCE, expand
from extender.config.settings import Settings
from extender.process.foreground import GunicornLog, Master, StartError, listen, run
from extender.serve.allowed_hosts import allowed_hosts, is_ours

if TYPE_CHECKING:
    from flask import Flask

CONF = Path(__file__).with_name("gunicorn.conf.py")
# For one receive or send of a client that has begun a request; gunicorn itself would wait for ever. Accepted sockets
# inherit it.
CLIENT_LIMIT_S = 5
_TIMEVAL = struct.pack("ll", CLIENT_LIMIT_S, 0)
# The kernel's buffers of each connection; it doubles both. Their memory counts as this process's.
RECEIVE_BUFFER_BYTES = 2**15
SEND_BUFFER_BYTES = 2**16
# mallopt(3). By default glibc gives each thread its own heap, and keeps the memory of past bodies and pages.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LARGE_ALLOCATION_BYTES = 2**16  # from here on freed memory goes back to the kernel at once
SWITCH_INTERVAL_S = 0.001  # with Python's 5 ms, /livez would wait so long for each busy thread


class StatusApiLog(GunicornLog):
    """A client that did not send or read in time is no error of the server."""

    def exception(self, message: str, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        if not isinstance(sys.exception(), BlockingIOError):
            super().exception(message, *arguments, **options)


class Server(Application):  # type: ignore[misc]
    def __init__(self, settings: Settings, listeners: Sequence[socket.socket], metrics_port: int | None) -> None:
        self._settings = settings
        self._metrics_port = metrics_port
        self._bind = [f"fd://{listener.detach()}" for listener in listeners]
        super().__init__()

    def load_config(self) -> None:
        self.load_config_from_file(str(CONF))
        self.cfg.set("bind", self._bind)
        self.cfg.set("loglevel", "debug" if self._settings.log.level == "debug" else "warning")

    def load(self) -> "Flask":
        """Called in the worker. Flask is imported only there: in the master it would take 8 MiB for nothing."""
        from extender.feed.replica import Replica
        from extender.web.app import MetricsListener, create_app
        from extender.web.page_budget import PageBudget

        settings = self._settings
        if settings.feed.socket is None:
            raise ValueError("feed.socket is empty")
        status_api = settings.status_api
        mirror = Replica(Path(settings.feed.socket), settings)
        first, *more = addresses(settings)
        hosts = allowed_hosts(first, status_api.port, (*status_api.hosts, *more))
        metrics = None
        if self._metrics_port is not None and (address := metrics_address(settings)) is not None:
            of_metrics = allowed_hosts(address, self._metrics_port, status_api.hosts)
            metrics = MetricsListener(self._metrics_port, lambda host: is_ours(host.encode("latin-1"), of_metrics))
        return create_app(
            mirror,
            is_ours=lambda host: is_ours(host.encode("latin-1"), hosts),
            metrics=metrics,
            pace=PageBudget(share=status_api.processor_percent / 100),
        )


def start_mirror(worker: Any) -> None:  # noqa: ANN401 - gunicorn's Worker
    """Hook post_worker_init."""
    worker.wsgi.extensions["readygate"].start()


def stop_mirror(_arbiter: Any, worker: Any) -> None:  # noqa: ANN401
    """Hook worker_exit. It is also called for a worker that failed to load."""
    application = getattr(worker, "wsgi", None)
    if application is not None:
        application.extensions["readygate"].stop()


def addresses(settings: Settings, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Returns where the status API listens, each address once. Raises StartError for a variable that is not set."""
    status_api = settings.status_api
    more = [_expanded("statusApi.moreAddresses", written, environ) for written in status_api.more_addresses]
    return list(dict.fromkeys([status_api.address, *more]))


def metrics_address(settings: Settings, environ: Mapping[str, str] = os.environ) -> str | None:
    """Returns where Prometheus is served. Raises StartError for a variable that is not set."""
    written = settings.metrics.address
    return None if written is None else _expanded("metrics.address", written, environ)


def _expanded(key: str, written: str, environ: Mapping[str, str]) -> str:
    address = expand(written, environ)
    if REFERENCE.search(address) is not None or not address:
        text = f"{key}: {written} has no value in the environment; set it, or write an address"
        raise StartError(text, usage=True)
    return address


def keep_memory_small() -> None:
    """Limits glibc's memory. Call it before the first thread starts. Does nothing with another C library."""
    with suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in (
            (M_ARENA_MAX, 1),
            (M_MMAP_THRESHOLD, LARGE_ALLOCATION_BYTES),
            (M_TRIM_THRESHOLD, LARGE_ALLOCATION_BYTES),
        ):
            mallopt(option, value)


def serve(settings: Settings) -> int:
    """Serves until SIGTERM (0) or SIGINT (130). Also returns in the worker, with its exit code. Raises StartError."""
    status_api, metrics = settings.status_api, settings.metrics
    shared = status_api.shares_port
    listeners = [
        listen(address, status_api.port, section="statusApi", shared=shared) for address in addresses(settings)
    ]
    metrics_port = None
    if (address := metrics_address(settings)) is not None:
        listeners.append(listen(address, metrics.port, section="metrics", shared=shared))
        metrics_port = listeners[-1].getsockname()[1]
    for listener in listeners:
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            listener.setsockopt(socket.SOL_SOCKET, option, _TIMEVAL)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    keep_memory_small()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    return run(Master(Server(settings, listeners, metrics_port)))
