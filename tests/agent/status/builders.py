"""Pods and statuses for tests: only the fields a test cares about."""

from agent.model import (
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


def make_pod(*containers, init=(), **fields):
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


def sidecar(name):
    return Container(name=name, restart_policy=RestartPolicy.ALWAYS)


def running(name, **fields):
    return ContainerStatus(name=name, state=ContainerRunning(NOW), container_id=f"test://{name}", **fields)


def waiting(name, **fields):
    return ContainerStatus(name=name, state=ContainerWaiting(), **fields)


def exited(name, exit_code=0, **fields):
    return ContainerStatus(name=name, state=ContainerTerminated(exit_code), container_id=f"test://{name}", **fields)


def condition(kind, status="True", reason="", message="", **fields):
    return Condition(kind, status, reason, message, **fields)


def words(made):
    """(status, reason, message) of a condition."""
    return made.status, made.reason, made.message


def make_status(**fields):
    return PodStatus(**fields)


def _container(given):
    return Container(name=given) if isinstance(given, str) else given
