"""How the agent's long-lived parts are started, watched and stopped: in order, and in reverse."""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

log = logging.getLogger(__name__)


class StartFailed(Exception):  # noqa: N818 - what happened, as the other words for it
    """A service could not be started. The text is one line: cause and remedy."""


class Service(Protocol):
    """One long-lived part. Constructed without side effects; `stop()` may be called twice and joins within a second."""

    name: str

    def start(self) -> None:
        """Makes threads and sockets. Raises StartFailed."""
        ...

    def stop(self) -> None: ...

    def healthy(self, now: float) -> bool:
        """Are its threads alive and do they progress? `now` is time.monotonic(). Never waits, never asks a network."""
        ...


def start_all(services: Sequence[Service]) -> None:
    """Starts in order; when one fails, those already started are stopped and the error is raised again."""
    started: list[Service] = []
    for service in services:
        try:
            service.start()
        except BaseException:
            stop_all(started)
            raise
        started.append(service)


def stop_all(services: Sequence[Service]) -> None:
    """Stops in reverse order; one that fails to stop does not keep the others from stopping."""
    for service in reversed(services):
        try:
            service.stop()
        except Exception:
            log.exception("service did not stop cleanly", extra={"service": service.name})


def unhealthy(services: Sequence[Service], now: float) -> list[str]:
    """Names of the services that do not progress."""
    return [service.name for service in services if not service.healthy(now)]


def run(services: Sequence[Service], wait: Callable[[], None]) -> None:
    """Starts everything, calls `wait`, stops everything when it returns. Raises StartFailed."""
    start_all(services)
    try:
        wait()
    finally:
        stop_all(services)
