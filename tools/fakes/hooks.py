"""Lifecycle hooks for tests: each runs until the test ends it."""

from agent.kubelet.pods.hooks import Hook
from agent.wire.model import Container, LifecycleHook, Pod


class FakeHooks:
    """`calls`: what was started, as (kind, container, id, limit in seconds)."""

    def __init__(self) -> None:
        self.calls = []
        self.hooks = []

    def start(self, _pod: Pod, container: Container, container_id: str, hook: LifecycleHook, **limits: object) -> Hook:
        kind = "postStart" if hook is container.post_start else "preStop"
        self.calls.append((kind, container.name, container_id, limits["limit_s"]))
        self.hooks.append(Hook())
        return self.hooks[-1]

    def end(self, number: int = -1, error: str | None = None) -> None:
        self.hooks[number].error, self.hooks[number].over = error, True
