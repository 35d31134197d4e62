"""A container runtime for tests: nothing runs, the test says what ends."""

import itertools
from dataclasses import replace

from agent.wire.containers import ContainerPhase, RuntimeContainer, RuntimePod, Sandbox


class FakeRuntime:
    """`stopped`: (container name, grace) of every request to stop. `refuse`: container name -> StartError to raise."""

    def __init__(self, clock):
        self._clock = clock
        self._ids = itertools.count(1)
        self.pods = {}
        self.stopped = []
        self.stopped_pods = []
        self.started = []
        self.refuse = {}

    def ready(self, _uid):
        return True

    def pod(self, uid):
        return self.pods.get(uid, RuntimePod(uid))

    def list_pods(self, uid=""):
        return tuple(pod for known, pod in self.pods.items() if uid in ("", known))

    def known_pods(self):
        return frozenset(self.pods)

    def prepare_pod(self, pod):
        self.pods.setdefault(pod.uid, RuntimePod(pod.uid, (Sandbox(True, "127.0.1.2"),)))
        return "127.0.1.2"

    def start_container(self, pod, container, restart_count):
        self.started.append((container.name, restart_count))
        if container.name in self.refuse:
            raise self.refuse[container.name]
        self.prepare_pod(pod)
        instance = RuntimeContainer(
            id=f"fake://{next(self._ids)}",
            name=container.name,
            phase=ContainerPhase.RUNNING,
            created_at=self._clock(),
            started_at=self._clock(),
            restart_count=restart_count,
        )
        known = self.pods[pod.uid]
        self.pods[pod.uid] = replace(known, containers=(*known.containers, instance))
        return instance.id

    def stop_container(self, container_id, grace_s):
        name = next(c.name for pod in self.pods.values() for c in pod.containers if c.id == container_id)
        self.stopped.append((name, grace_s))

    def end(self, name, exit_code=0):
        """The newest container of that name ends."""
        for uid, pod in self.pods.items():
            newest = pod.newest(name)
            if newest is not None and newest.phase is ContainerPhase.RUNNING:
                ended = replace(
                    newest, phase=ContainerPhase.EXITED, exit_code=exit_code, finished_at=self._clock(), reason="Error"
                )
                others = tuple(c for c in pod.containers if c.id != newest.id)
                self.pods[uid] = replace(pod, containers=(*others, ended))

    def remove_container(self, container_id):
        for uid, pod in self.pods.items():
            self.pods[uid] = replace(pod, containers=tuple(c for c in pod.containers if c.id != container_id))

    def stop_pod(self, uid):
        self.stopped_pods.append(uid)

    def remove_pod(self, uid):
        self.pods.pop(uid, None)

    def environment(self, _container_id):
        return {}

    def end_all(self, _grace_s, **_limits):
        for pod in list(self.pods.values()):
            for container in pod.running:
                self.end(container.name, 143)
        return True
