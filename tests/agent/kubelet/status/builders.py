"""Pods and statuses for tests: only the fields a test cares about."""

from collections.abc import Sequence
from typing import Any

from agent.wire.model import (
    Condition,
    Container,
    ContainerRunning,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Pod,
    PodStatus,
    RestartPolicy,
)

NOW = 1_700_000_000.0


def make_pod(*containers: Container | str, init: Sequence[Container | str] = (), **fields: Any) -> Pod:
    """Containers by name or as they are."""
    return Pod(
        **{
            "uid": "uid-1",
            "name": "pod-1",
            "namespace": "default",
            "containers": tuple(_container(c) for c in containers),
            "init_containers": tuple(_container(c) for c in init),
            "generation": 1,
            **fields,
        }
    )


def sidecar(name: str) -> Container:
    return Container(name=name, restart_policy=RestartPolicy.ALWAYS)


def running(name: str, **fields: Any) -> ContainerStatus:
    return ContainerStatus(name=name, state=ContainerRunning(NOW), container_id=f"test://{name}", **fields)


def waiting(name: str, **fields: Any) -> ContainerStatus:
    return ContainerStatus(name=name, state=ContainerWaiting(), **fields)


def exited(name: str, exit_code: int = 0, **fields: Any) -> ContainerStatus:
    return ContainerStatus(name=name, state=ContainerTerminated(exit_code), container_id=f"test://{name}", **fields)


def condition(kind: str, status: str = "True", reason: str = "", message: str = "", **fields: Any) -> Condition:
    return Condition(kind, status, reason, message, **fields)


def words(made: Condition) -> tuple[str, str, str]:
    """(status, reason, message) of a condition."""
    return made.status, made.reason, made.message


def make_status(**fields: Any) -> PodStatus:
    return PodStatus(**fields)


def _container(given: Container | str) -> Container:
    return Container(name=given) if isinstance(given, str) else given
