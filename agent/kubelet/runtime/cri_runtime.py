"""Containers of a container runtime, over the CRI: for nodes that have one and no kubelet.

Mirrors createPodSandbox, startContainer, killContainer and the garbage collection of pkg/kubelet/kuberuntime, v1.36.3.
What we make is marked as ours, nothing else is looked at or touched, and nothing at all is written where a kubelet
answers. Containers outlive the agent: the next one goes on with what it finds.
"""

import logging
import math
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent.cri.base import RUNTIME_READY, CriError, Reader, RuntimeStatus
from agent.cri.calls import Calls
from agent.kubelet.runtime.base import StartError
from agent.kubelet.runtime.cri_configs import container_config, log_path, restarts_by_logs, sandbox_config
from agent.kubelet.runtime.cri_writer import CriWriter
from agent.kubelet.runtime.environment import REASON_CONFIG, REASON_CREATE, Place, variables
from agent.kubelet.runtime.images import Images
from agent.kubelet.runtime.kubelet_lock import KubeletLock
from agent.kubelet.runtime.readiness import Readiness, looked
from agent.kubelet.runtime.stopper import Stopper
from agent.processes.command import RuntimeUnavailable
from agent.wire.containers import ContainerPhase, RuntimePod, Sandbox
from agent.wire.model import MOST_RESTARTS, Container, Image, Pod
from component.lifecycle import StartFailed
from component.loop import Loop

if TYPE_CHECKING:
    from agent.cri.api_pb2 import ContainerConfig

log = logging.getLogger(__name__)

REASON_RUN = "RunContainerError"
REASON_SANDBOX = "FailedCreatePodSandBox"
REASON_KUBELET = "KubeletIsThere"
STATUS_EVERY_S = 5.0
IMAGES_EVERY_S = 30.0
LEFT_BEHIND_GRACE_S = (
    2.0  # of pods that nobody knows any more: a kubelet gives a second, and no container less than two
)
KEPT_DEAD = 1  # of each container, for its last state
MOST_ATTEMPTS = 2**32  # to make a sandbox; then they begin anew, as where Go counts them


class CriRuntime:
    """A Service and a ContainerRuntime. Calls wait for the runtime, each to its own deadline: one thread a pod.

    `logs`: below it a folder a pod, which the runtime writes into: so it has the same path for both.
    """

    name = "container runtime"

    def __init__(
        self,
        writer: CriWriter,
        *,
        host_ip: str,
        logs: Path,
        guard: KubeletLock,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.host_ip = host_ip
        self.reader: Reader = writer
        self._writer = writer
        self._logs = logs
        self._guard = guard
        self._wall = wall
        self._monotonic = monotonic
        self._images = Images(monotonic)
        self._calls: dict[str, Calls] = {}  # by pod: those that make something for it
        self._stops = Stopper(self._stop_once, monotonic=monotonic)
        self.version = ""  # name://version, once it has answered
        self.status = RuntimeStatus()  # as it was when the runtime was last ready
        self.images: tuple[Image, ...] = ()
        self._list_images_at = -math.inf
        self.readiness = Readiness()  # replaced as a whole
        self._said = self._said_of_images = ""
        self._loop = Loop("runtime-status", self._look, stuck_after_s=600.0, unblock=self._close, monotonic=monotonic)
        self.stop, self.healthy = self._loop.stop, self._loop.healthy
        self.pod, self.list_pods, self.known_pods = writer.pod, writer.list_pods, writer.known_pods
        self.exec, self.folders = writer.exec, writer.folders

    # --- life ---

    def start(self) -> None:
        """A runtime that is away is waited for. Raises StartFailed."""
        if refusal := self._guard.refusal():
            raise StartFailed(refusal)
        try:
            self._logs.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise StartFailed(f"kubelet.rootDir is not usable: {e}; give a folder the agent may write") from e
        self._loop.start()

    def end_all(self, grace_s: float, wait_s: float) -> bool:  # noqa: ARG002 - of a runtime that ends with us
        """They outlive us, as a kubelet's do."""
        return False

    def refusal(self) -> str:
        """Why nothing is written into it, "" for nothing."""
        return self._guard.refusal()

    # --- pods ---

    def prepare_pod(self, pod: Pod) -> str:
        self._may_write()
        self._refuse(pod.beyond)
        writer = self._writer.of_pod(self._calls_of(pod.uid))
        try:
            known = writer.pod(pod.uid)  # what is there, not what was seen: never a second one
            if known.sandbox_usable(host_network=pod.host_network):
                return known.ip
            for sandbox in known.sandboxes:
                writer.stop_sandbox(sandbox.id)
            attempt = (known.sandboxes[0].attempt + 1) % MOST_ATTEMPTS if known.sandboxes else 0
            folder = self._folder(pod.uid)
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            parent = self._writer.cgroup_parent()
            try:
                writer.run_sandbox(sandbox_config(pod, attempt, self._writer.owner, str(folder), parent))
            finally:
                self._tidy_sandboxes(known)
            return writer.pod(pod.uid).ip
        except (CriError, OSError) as e:
            raise StartError(REASON_SANDBOX, f'Failed to create sandbox for pod "{pod.name}": {e}') from e

    def start_container(self, pod: Pod, container: Container, restart_count: int) -> str:
        self._may_write()
        self._refuse((*pod.beyond, *container.beyond))
        calls = self._calls_of(pod.uid)
        writer = self._writer.of_pod(calls)
        try:
            known = writer.pod(pod.uid)
        except CriError as e:
            raise StartError(REASON_CREATE, str(e)) from e
        newest = known.newest(container.name)
        if newest is not None and newest.phase is ContainerPhase.RUNNING:
            return newest.id  # whoever started it: there are never two
        ready = next((sandbox for sandbox in known.sandboxes if sandbox.ready), None)
        if ready is None:
            raise StartError(REASON_CREATE, "the pod has no sandbox any more")
        env = variables(pod, container, Place(known.ip, self.host_ip, {}))
        image_ref = self._images.ensure(writer, calls, pod.uid, container.image, container.image_pull_policy)
        self._may_write()  # a pull may take an hour, and one waits for the others
        folder = self._folder(pod.uid)
        if newest is None:  # never, or the runtime has lost it: what it wrote is not written into again
            restart_count = max(restart_count, min(restarts_by_logs(_files(folder / container.name)), MOST_RESTARTS))
        config = container_config(pod, container, restart_count, self._writer.owner, image_ref, env)
        try:
            (folder / container.name).mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as e:
            text = f"create container log directory for container {container.name} failed: {e}"
            raise StartError(REASON_CONFIG, text) from e
        try:
            return self._made_and_started(writer, pod, ready, config, folder)
        finally:
            self._tidy(known, container.name)

    def _made_and_started(
        self, writer: CriWriter, pod: Pod, ready: Sandbox, config: "ContainerConfig", folder: Path
    ) -> str:
        try:
            parent = self._writer.cgroup_parent()
            sandbox = sandbox_config(pod, ready.attempt, self._writer.owner, str(folder), parent)
            container_id = writer.create(ready.id, config, sandbox)
        except CriError as e:
            raise StartError(REASON_CREATE, str(e)) from e
        try:
            writer.start(container_id)
        except CriError as e:
            raise StartError(REASON_RUN, str(e)) from e
        return container_id

    def abandon(self, uid: str) -> None:
        """The pod is to end: nothing more is made for it, and who makes something gets PodIsEnding. Never waits."""
        self._calls_of(uid).end()

    def stop_container(self, container_id: str, grace_s: float) -> None:
        self._stops.ask(container_id, grace_s)

    def remove_container(self, container_id: str) -> None:
        self._may_change()
        self._writer.remove(container_id)

    def stop_pod(self, uid: str) -> None:
        known = self._writer.pod(uid)
        if known.sandboxes:
            self._may_change()
        for sandbox in known.sandboxes:
            self._writer.stop_sandbox(sandbox.id)

    def remove_pod(self, uid: str) -> None:
        self._calls.pop(uid, None)
        self._images.forget(uid)
        known = self._writer.pod(uid)
        if known.sandboxes or known.containers:
            self._may_change()
        running = [c for c in known.containers if c.phase in (ContainerPhase.RUNNING, ContainerPhase.UNKNOWN)]
        for container in running:
            self._stops.ask(container.id, LEFT_BEHIND_GRACE_S)
        if running:
            return
        for sandbox in known.sandboxes:
            self._writer.stop_sandbox(sandbox.id)
        for container in known.containers:
            self._writer.remove(container.id)
        for sandbox in known.sandboxes:
            self._writer.remove_sandbox(sandbox.id)
        shutil.rmtree(self._folder(uid), ignore_errors=True)

    def use_pod_cidr(self, cidr: str) -> None:
        """Pods get addresses of this block, where the CNI configuration leaves that to the runtime."""
        self._may_change()
        self._writer.use_pod_cidr(cidr)

    # --- small things ---

    def _calls_of(self, uid: str) -> Calls:
        return self._calls.setdefault(uid, Calls())

    def _may_write(self) -> None:
        if refusal := self._guard.refusal():
            raise StartError(REASON_KUBELET, refusal)

    def _may_change(self) -> None:
        if refusal := self._guard.refusal():
            raise RuntimeUnavailable(refusal)

    @staticmethod
    def _refuse(beyond: Sequence[str]) -> None:
        """Nothing runs with less than its spec asks for, be it less protection."""
        if beyond:
            raise StartError(REASON_CONFIG, f"{', '.join(beyond)}: not supported here")

    def _stop_once(self, container_id: str, grace_s: float) -> None:
        """One that was made and never started is removed: it cannot end. So is one of which the runtime knows nothing
        even then: its name shall be free for the next one."""
        self._may_change()
        self._writer.stop(container_id, grace_s)
        left = self._writer.container(container_id)
        if left is None or left.phase is ContainerPhase.EXITED:
            return
        if left.phase is ContainerPhase.RUNNING:
            raise RuntimeUnavailable(f"container {container_id} runs on, though the runtime says that it was stopped")
        self._writer.remove(container_id)

    def _tidy(self, before: RuntimePod, name: str) -> None:
        """Of instances that have ended as many stay as a kubelet keeps; of sandboxes those that are in use. What fails
        is tried again after the next start."""
        old = [c for c in before.instances(name) if c.phase is not ContainerPhase.RUNNING][KEPT_DEAD:]
        with suppress(CriError, OSError):
            for container in old:
                self._writer.remove(container.id)
                (self._folder(before.uid) / log_path(name, container.restart_count)).unlink(missing_ok=True)
            self._tidy_sandboxes(replace(before, containers=tuple(c for c in before.containers if c not in old)))

    def _tidy_sandboxes(self, before: RuntimePod) -> None:
        used = {container.sandbox_id for container in before.containers}
        with suppress(CriError):
            for sandbox in before.sandboxes[1:]:
                if not sandbox.ready and sandbox.id not in used:
                    self._writer.remove_sandbox(sandbox.id)

    def _folder(self, uid: str) -> Path:
        """Below `logs`, whatever the runtime says a pod's uid is."""
        return self._logs / (uid.replace("/", "_").replace("\0", "_") if uid.strip(".") else f"_{uid}")

    def _close(self) -> None:
        """Who waits for the runtime gets an error."""
        self._stops.close()
        self._writer.close()

    def _look(self) -> float:
        """updateRuntimeUp: is it there, and can it make pods' networks?"""
        try:
            version = self._writer.version()
            status = self._writer.status()
        except CriError as e:
            if str(e) != self._said and not self._loop.stopping:
                log.warning("container runtime does not answer", extra={"cause": e.trouble.value, "error": str(e)})
            self._said = str(e)
            return STATUS_EVERY_S
        self._said, self.version = "", f"{version.name}://{version.version}"
        self.readiness = looked(self.readiness, status, self._monotonic())
        if (runtime := status.condition(RUNTIME_READY)) is not None and runtime.status:
            self.status = status
        if self._monotonic() >= self._list_images_at:
            self._list_images()
        return STATUS_EVERY_S

    def _list_images(self) -> None:
        """For the Node's status: where they cannot be listed those of before stay."""
        self._list_images_at = self._monotonic() + IMAGES_EVERY_S
        try:
            self.images, self._said_of_images = self._writer.images(), ""
        except CriError as e:
            if str(e) != self._said_of_images and not self._loop.stopping:
                log.warning("images not listed", extra={"cause": e.trouble.value, "error": str(e)})
            self._said_of_images = str(e)


def _files(folder: Path) -> list[str]:
    """Nothing where it is not there, or cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
