"""What a container runtime knows of pods, asked over the CRI. Mirrors GetPods and GetPodStatus of
pkg/kubelet/kuberuntime/kuberuntime_manager.go, v1.36.3."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from google.protobuf.message import Message

from agent.cri import api_pb2 as cri
from agent.cri import convert
from agent.cri.base import CriError, Events, RuntimeStatus, Trouble, Version
from agent.cri.client import LONGEST_S, Client, M, Stream
from agent.processes.command import Completed, ExecTimeout, RuntimeUnavailable
from agent.wire.containers import ContainerEvent, RuntimeContainer, RuntimePod, Sandbox

A = TypeVar("A")
T = TypeVar("T")


class CriReader:
    """A Reader. Several threads may call at once: each call waits for its own answer only.

    `owner`: lists, and so pods, are of what has this label (`convert.LABEL_OWNER`); "": of all there is."""

    def __init__(self, client: Client, *, may_exec: bool = False, owner: str = "") -> None:
        self._client = client
        self._wanted = {convert.LABEL_OWNER: owner} if owner else {}
        self._may_exec = may_exec
        self._name = ""  # of the runtime, for ids; asked for once
        self.close = client.close

    def version(self) -> Version:
        answer = self._client.call(cri.VersionRequest(version="v1"), cri.VersionResponse)
        version = self._converted("Version", convert.version_of, answer)
        self._name = version.name
        return version

    def status(self, *, verbose: bool = False) -> RuntimeStatus:
        answer = self._client.call(cri.StatusRequest(verbose=verbose), cri.StatusResponse)
        return self._converted("Status", convert.status_of, answer)

    def list_pods(self, uid: str = "") -> Sequence[RuntimePod]:
        name = self._runtime()
        return convert.listed_pods(self._sandboxes(uid), self._containers(uid), name)

    def pod(self, uid: str) -> RuntimePod:
        """What ends between the lists and the looks is left out."""
        # By its uid: a runtime may pass our filter over.
        pod = next((listed for listed in self.list_pods(uid) if listed.uid == uid), None)
        if pod is None:
            return RuntimePod(uid)
        sandboxes = [self._sandbox(sandbox.id) for sandbox in pod.sandboxes]
        containers = [self._container(container.id, container.sandbox_id) for container in pod.containers]
        return RuntimePod(
            uid,
            tuple(sandbox for sandbox in sandboxes if sandbox is not None),
            tuple(container for container in containers if container is not None),
            name=pod.name,
            namespace=pod.namespace,
        )

    def network_namespace(self, uid: str) -> str:
        ready = [s for s in self._sandboxes(uid) if s.metadata.uid == uid and s.state == cri.SANDBOX_READY]
        if not ready:
            return ""
        newest = max(ready, key=lambda sandbox: sandbox.created_at)
        answer = self._found(
            cri.PodSandboxStatusRequest(pod_sandbox_id=newest.id, verbose=True), cri.PodSandboxStatusResponse
        )
        return "" if answer is None else convert.network_namespace_of(answer)

    def container(self, container_id: str) -> RuntimeContainer | None:
        self._runtime()
        return self._container(container_id)

    def known_pods(self) -> frozenset[str]:
        return frozenset(sandbox.metadata.uid for sandbox in self._sandboxes() if sandbox.metadata.uid)

    def events(self) -> Events:
        name = self._runtime()
        return CriEvents(self._client.stream(cri.GetEventsRequest(), cri.ContainerEventResponse), name)

    def exec(self, container_id: str, command: Sequence[str], timeout_s: float) -> Completed:
        if not self._may_exec:
            raise RuntimeUnavailable("commands in containers are not allowed to this reader")
        limit_s = min(timeout_s, LONGEST_S)
        # Whole seconds, as the CRI has them; 0 is none, as a kubelet has it for postStart hooks.
        whole_s = 0 if timeout_s == math.inf else max(1, math.ceil(limit_s))
        request = cri.ExecSyncRequest(container_id=convert.bare_id(container_id), cmd=command, timeout=whole_s)
        try:
            answer = self._client.call(request, cri.ExecSyncResponse, deadline_s=limit_s + self._client.deadline_s)
        except CriError as e:
            if e.trouble is Trouble.HANGS:  # the command as a rule, seldom the runtime: nobody can tell
                raise ExecTimeout(command, limit_s) from e
            raise
        return Completed(answer.exit_code, answer.stdout, answer.stderr)

    def _runtime(self) -> str:
        return self._name or self.version().name

    def _sandboxes(self, uid: str = "") -> Sequence[cri.PodSandbox]:
        request = cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(label_selector=self._of_pod(uid)))
        items = self._client.items(request, cri.PodSandbox, convert.lighter)
        return [item for item in items if self._wanted.items() <= item.labels.items()]

    def _containers(self, uid: str = "") -> Sequence[cri.Container]:
        request = cri.ListContainersRequest(filter=cri.ContainerFilter(label_selector=self._of_pod(uid)))
        containers = self._client.items(request, cri.Container, convert.lighter)
        return [container for container in containers if self._wanted.items() <= container.labels.items()]

    def _of_pod(self, uid: str) -> dict[str, str]:
        return {**self._wanted, **({convert.LABEL_POD_UID: uid} if uid else {})}

    def _sandbox(self, sandbox_id: str) -> Sandbox | None:
        request = cri.PodSandboxStatusRequest(pod_sandbox_id=convert.bare_id(sandbox_id))
        answer = self._found(request, cri.PodSandboxStatusResponse)
        if answer is None:
            return None
        return self._converted("PodSandboxStatus", lambda a: convert.sandbox_of(a, self._name), answer)

    def _container(self, container_id: str, sandbox_id: str = "") -> RuntimeContainer | None:
        request = cri.ContainerStatusRequest(container_id=convert.bare_id(container_id))
        answer = self._found(request, cri.ContainerStatusResponse)
        if answer is None:
            return None
        return self._converted(
            "ContainerStatus", lambda a: convert.container_of(a.status, self._name, sandbox_id), answer
        )

    def _found(self, request: Message, answer: type[M]) -> M | None:
        """None for what is not there."""
        try:
            return self._client.call(request, answer)
        except CriError as e:
            if e.trouble is Trouble.NOT_FOUND:
                return None
            raise

    def _converted(self, call: str, convert_: Callable[[A], T], answer: A) -> T:
        try:
            return convert_(answer)
        except convert.Garbled as e:
            raise CriError(call, self._client.socket, Trouble.GARBAGE, e) from None


class CriEvents:
    """Events."""

    def __init__(self, stream: Stream[cri.ContainerEventResponse], runtime: str) -> None:
        self._stream = stream
        self._runtime = runtime
        self.cancel = stream.cancel

    def __iter__(self) -> Iterator[ContainerEvent]:
        events = (convert.event_of(answer, self._runtime) for answer in self._stream)
        return (event for event in events if event is not None)
