"""What is told, and of what. Pure. Reasons and texts are those of pkg/kubelet/events and of who tells there."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.wire.model import Container, Pod

NORMAL = "Normal"
WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class About:
    """The object. `field_path`: a part of it, as spec.containers{c}."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    field_path: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """`type`: NORMAL or WARNING. `reason`: one word."""

    about: About
    type: str
    reason: str
    message: str


Record = Callable[[Event], None]
"""Takes an Event and never waits."""


def record_nothing(_event: Event) -> None:
    """For whoever has nobody to tell."""


def about_node(name: str) -> About:
    """Without uid, as the kubelet's: what `kubectl describe node` looks for has none either."""
    return About("Node", name)


def about_pod(pod: Pod) -> About:
    return About("Pod", pod.name, pod.namespace, pod.uid)


def about_container(pod: Pod, container_name: str) -> About:
    """As GenerateContainerRef."""
    within = "containers"
    if any(c.name == container_name for c in pod.init_containers):
        within = "initContainers"
    elif any(c.name == container_name for c in pod.ephemeral_containers):
        within = "ephemeralContainers"
    return About("Pod", pod.name, pod.namespace, pod.uid, f"spec.{within}{{{container_name}}}")


def of_container(pod: Pod, container: Container, type_: str, reason: str, message: str) -> Event:
    return Event(about_container(pod, container.name), type_, reason, message)
