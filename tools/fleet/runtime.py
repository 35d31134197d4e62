"""The container runtime of a virtual node: it keeps in memory what it was asked to run, and runs nothing.

Containers start at once, run until they are stopped, and each command in them succeeds.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.processes.command import Completed, RuntimeUnavailable
from agent.wire.containers import ContainerPhase, RuntimeContainer, RuntimePod, Sandbox
from agent.wire.model import Container, Pod

SUCCEEDED = Completed(0, b"", b"")
KILLED = 137


class VirtualRuntime:
    """A ContainerRuntime, and a Service without a thread. `host_ip`: of the node. `addresses`: gives one to a pod."""

    name = "virtual runtime"

    def __init__(self, host_ip: str, addresses: Callable[[], str], *, wall: Callable[[], float] = time.time) -> None:
        self.host_ip = host_ip
        self._addresses, self._wall = addresses, wall
        self._lock = threading.Lock()
        self._made = 0
        self._pods: dict[str, RuntimePod] = {}

    def start(self) -> None:
        """Nothing runs."""

    def stop(self) -> None:
        """As start()."""

    def healthy(self, monotonic: float) -> bool:  # noqa: ARG002 - the Service protocol
        return True

    def pod(self, uid: str) -> RuntimePod:
        with self._lock:
            return self._pods.get(uid, RuntimePod(uid))

    def list_pods(self, uid: str = "") -> Sequence[RuntimePod]:
        with self._lock:
            return [pod for known, pod in self._pods.items() if uid in ("", known)]

    def known_pods(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._pods)

    def prepare_pod(self, pod: Pod) -> str:
        with self._lock:
            if pod.uid not in self._pods:
                ip = self.host_ip if pod.host_network else self._addresses()
                self._pods[pod.uid] = RuntimePod(pod.uid, (Sandbox(True, ip, host_network=pod.host_network),))
            return self._pods[pod.uid].ip

    def start_container(self, pod: Pod, container: Container, restart_count: int) -> str:
        self.prepare_pod(pod)
        wall = self._wall()
        with self._lock:
            self._made += 1
            made = RuntimeContainer(
                id=f"virtual://{self.host_ip}-{self._made}",
                name=container.name,
                phase=ContainerPhase.RUNNING,
                created_at=wall,
                started_at=wall,
                restart_count=restart_count,
                image=container.image,
            )
            known = self._pods[pod.uid]
            self._pods[pod.uid] = replace(known, containers=(*known.containers, made))
        return made.id

    def stop_container(self, container_id: str, grace_s: float) -> None:  # noqa: ARG002 - it ends at once
        wall = self._wall()

        def stopped(one: RuntimeContainer) -> RuntimeContainer:
            if one.id != container_id or one.phase is not ContainerPhase.RUNNING:
                return one
            return replace(
                one, phase=ContainerPhase.EXITED, exit_code=KILLED, finished_at=wall, reason="Error", message=""
            )

        self._change(lambda pod: tuple(map(stopped, pod.containers)))

    def remove_container(self, container_id: str) -> None:
        self._change(lambda pod: tuple(one for one in pod.containers if one.id != container_id))

    def stop_pod(self, uid: str) -> None:
        """Its address is its own until it is removed."""

    def remove_pod(self, uid: str) -> None:
        with self._lock:
            self._pods.pop(uid, None)

    def exec(self, container_id: str, command: Sequence[str], timeout_s: float) -> Completed:  # noqa: ARG002
        with self._lock:
            running = {one.id for pod in self._pods.values() for one in pod.running}
        if container_id not in running:
            raise RuntimeUnavailable(f"container {container_id} does not run")
        return SUCCEEDED

    def end_all(self, grace_s: float, wait_s: float) -> bool:  # noqa: ARG002 - they end at once
        for pod in self.list_pods():
            for container in pod.running:
                self.stop_container(container.id, 0.0)
        return True

    def _change(self, containers: Callable[[RuntimePod], tuple[RuntimeContainer, ...]]) -> None:
        with self._lock:
            for uid, pod in self._pods.items():
                self._pods[uid] = replace(pod, containers=containers(pod))
