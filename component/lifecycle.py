"""How the long-lived parts of a program are started, watched and stopped: in order, and in reverse."""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

log = logging.getLogger(__name__)


class StartFailed(Exception):  # noqa: N818 - what happened, as the other words for it
    """A service could not be started. The text is one line: cause and remedy."""


class Service(Protocol):
    """A long-lived part. Its constructor has no side effects; start() makes threads and sockets or raises StartFailed.
    stop() returns within a second, also when called again. healthy(): its threads live and progress; it never waits."""

    @property
    def name(self) -> str: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def healthy(self, monotonic: float) -> bool: ...


def start_all(services: Sequence[Service]) -> None:
    """Starts in order; when one fails, those already started are stopped and the error is raised again."""
    for count, service in enumerate(services):
        try:
            service.start()
        except BaseException:
            stop_all(services[:count])
            raise


def stop_all(services: Sequence[Service]) -> None:
    """Stops in reverse order; one that fails to stop does not keep the others from stopping."""
    for service in reversed(services):
        try:
            service.stop()
        except Exception:
            log.exception("service did not stop cleanly", extra={"service": service.name})


def unhealthy(services: Sequence[Service], monotonic: float) -> list[str]:
    return [service.name for service in services if not service.healthy(monotonic)]


def run(services: Sequence[Service], wait: Callable[[], None]) -> None:
    """Starts everything, calls `wait`, stops everything when it returns. Raises StartFailed."""
    start_all(services)
    try:
        wait()
    finally:
        stop_all(services)
