"""Containers as local processes: for demos, tests and nodes without a container runtime. No isolation of any kind.

A container is a process with a session of its own; images are not pulled (a container without a command runs a pause),
volumes are not mounted, resources are not limited. Each pod has its own loopback address out of the node's block.

The runtime lives as long as the agent. When the agent is stopped (SIGTERM) every container is ended, since nobody would
be left to look after it. When the agent is killed its containers go on; the next one finds them by the state files (pid
and start time, and the mark in their environment), ends exactly those and starts the containers anew.
"""

import contextlib
import heapq
import logging
import os
import selectors
import shutil
import signal
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from agent.kubelet.runtime.addresses import Addresses, NoAddressError
from agent.kubelet.runtime.base import StartError
from agent.kubelet.runtime.environment import Place, command_line, environment
from agent.kubelet.runtime.instances import (
    ID_PREFIX,
    Instance,
    LogFailedError,
    SandboxState,
    as_runtime_container,
    ended,
    launch,
    not_started,
    output_pipe,
    sandbox_id,
    start_message,
)
from agent.kubelet.runtime.leftovers import end_leftovers
from agent.kubelet.runtime.output import LIMIT_BYTES, Output
from agent.kubelet.runtime.records import KEPT_INSTANCES, InstanceRecord, Records, SandboxRecord
from agent.processes.command import Completed, RuntimeUnavailable, run_command
from agent.processes.proc import ENV_CONTAINER_ID, boot_id, end_container, end_containers
from agent.wire.containers import ContainerEvent, EventKind, RuntimePod, Sandbox
from agent.wire.model import Container, Pod
from component.lifecycle import StartFailed
from component.loop import Loop

log = logging.getLogger(__name__)

REASON_RUN = "RunContainerError"
REASON_SANDBOX = "FailedCreatePodSandBox"
TURN_S = 5.0  # the thread looks around at least this often
STUCK_AFTER_S = 30.0
INHERITED = ("PATH", "LANG", "LC_ALL", "TZ")


class ProcessRuntime:
    """`on_event` is called when something has happened, in the thread that did it, or ours where a container has ended:
    outside the lock, and it must not wait."""

    name = "process runtime"

    def __init__(
        self,
        root: Path,
        pod_cidr: str,
        *,
        on_event: Callable[[ContainerEvent], None],
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        log_limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        self._records = Records(root)
        self._addresses = Addresses(pod_cidr)
        self._on_event = on_event
        self._wall = wall
        self._monotonic = monotonic
        self._log_limit_bytes = log_limit_bytes
        self._lock = threading.Lock()
        self._pods: dict[str, SandboxState] = {}
        self._deadlines: list[tuple[float, str]] = []
        self._new: deque[Instance] = deque()
        self._selector: selectors.BaseSelector | None = None
        self._wake_r, self._wake_w = -1, -1
        self._closed = False
        self._saves, self._boot = True, ""
        self._ended = threading.Condition(self._lock)
        self._pause = _pause_command()
        self._loop = Loop(
            "process-runtime",
            self._turn,
            stuck_after_s=STUCK_AFTER_S,
            unblock=self._wake,
            at_end=self._close_selector,
            monotonic=monotonic,
        )
        self.healthy = self._loop.healthy

    @property
    def host_ip(self) -> str:
        """The node's own address: the first of its block."""
        return self._addresses.node

    # --- life ---

    def start(self) -> None:
        """Ends what the last agent left behind. Raises StartFailed if the state folder is not usable."""
        try:
            self._records.prepare()
            self._boot = boot_id()  # once: later there may be no descriptor to read it with
            self._pods = end_leftovers(self._records, self._addresses, self._wall)
        except OSError as e:
            raise StartFailed(f"kubelet.rootDir is not usable: {e}; give a folder the agent may write") from e
        self._selector = selectors.DefaultSelector()
        self._wake_r, self._wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._wake_r, selectors.EVENT_READ, None)
        self._loop.start()

    def end_all(self, grace_s: float, wait_s: float) -> bool:
        """Ends every container, by force after `grace_s`; True if all had ended within `wait_s`."""
        with self._lock:
            running = [i.record.id for s in self._pods.values() for i in s.instances if i.process is not None]
        for container_id in running:
            self.stop_container(container_id, grace_s)
        with self._ended:
            return self._ended.wait_for(lambda: not self._any_running(), timeout=wait_s)

    def stop(self) -> None:
        """Ends every container (killed after 0.4 s of grace) and the thread. Nothing is started any more."""
        with self._lock:
            self._closed = True
        if self._loop.stopping:
            return
        self.end_all(grace_s=0.4, wait_s=0.8)
        self._loop.stop()
        with self._lock:
            left = [i for s in self._pods.values() for i in s.instances if i.process is not None]
        end_containers(_leaders(left))

    # --- what the sync loop asks (see base.ContainerRuntime) ---

    def pod(self, uid: str) -> RuntimePod:
        with self._lock:
            return self._pod(uid)

    def list_pods(self, uid: str = "") -> tuple[RuntimePod, ...]:
        with self._lock:
            return tuple(self._pod(known) for known in self._pods if uid in ("", known))

    def known_pods(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._pods)

    def prepare_pod(self, pod: Pod) -> str:
        with self._lock:
            sandbox = self._pods.get(pod.uid)
            if sandbox is not None:
                return sandbox.record.ip
            try:
                ip = self.host_ip if pod.host_network else self._addresses.take(pod.uid, pod.status.pod_ip)
            except NoAddressError as e:
                raise StartError(REASON_SANDBOX, str(e)) from e
            sandbox = SandboxState(SandboxRecord(ip=ip, host_network=pod.host_network))
            self._pods[pod.uid] = sandbox
        self._save(partial(self._records.put_sandbox, pod.uid, sandbox.record))
        self._tell(EventKind.STARTED, pod.uid, sandbox_id(pod.uid))
        return sandbox.record.ip

    def start_container(self, pod: Pod, container: Container, restart_count: int) -> str:
        ip = self.prepare_pod(pod)
        bare_id = uuid.uuid4().hex
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        env = environment(pod, container, Place(ip, self.host_ip, inherited))
        env[ENV_CONTAINER_ID] = bare_id  # last: no variable of the spec hides the process from us
        argv = command_line(container, env, self._pause)
        record = InstanceRecord(
            id=ID_PREFIX + bare_id,
            name=container.name,
            attempt=restart_count,
            created_at=self._wall(),
            image=container.image,
            boot=self._boot,
        )
        instance = Instance(pod.uid, record, env=env)
        path = self._records.log_path(pod.uid, container.name, restart_count)
        if self._closed:
            raise StartError(REASON_RUN, "the agent is ending")
        # Before there is a process: an agent that is killed between the two leaves a record to find it by.
        self._save(partial(self._records.put_instance, pod.uid, record))
        try:
            with output_pipe(lambda reader: self._output(reader, path)) as (output, writer):
                launch(instance, argv, container.working_dir, output, writer, self._wall())
        except OSError as e:
            message = start_message(argv[0], container.working_dir, e)
            instance.record = not_started(record, message, self._wall())
            self._keep(instance)
            self._tell(EventKind.STOPPED, pod.uid, record.id)
            raise StartError(REASON_RUN, message) from e
        self._keep(instance)
        self._tell(EventKind.STARTED, pod.uid, record.id)
        self._new.append(instance)
        self._wake()
        if self._closed and instance.process is not None:
            end_container(bare_id, instance.process.pid)
        return record.id

    def stop_container(self, container_id: str, grace_s: float) -> None:
        deadline = self._monotonic() + max(0.0, grace_s)
        with self._lock:
            instance = self._find(container_id)
            if instance is None or instance.process is None:
                return
            if instance.kill_at is not None and instance.kill_at <= deadline:
                return
            first = instance.kill_at is None
            instance.kill_at = deadline
            heapq.heappush(self._deadlines, (deadline, container_id))
            if first and grace_s > 0 and instance.pidfd >= 0:
                # To the first process only, as a runtime does to the first process of a container.
                _send(instance.pidfd, signal.SIGTERM)
        self._wake()

    def remove_container(self, container_id: str) -> None:
        with self._lock:
            instance = self._find(container_id)
            if instance is None or instance.process is not None:
                return
            sandbox = self._pods[instance.uid]
            sandbox.instances = [i for i in sandbox.instances if i is not instance]
        self._save(partial(self._records.remove_instance, instance.uid, instance.record))
        self._tell(EventKind.DELETED, instance.uid, container_id)

    def stop_pod(self, uid: str) -> None:
        """Its address is its own until it is removed."""

    def remove_pod(self, uid: str) -> None:
        with self._lock:
            if self._pods.pop(uid, None) is None:
                return
            self._addresses.release(uid)
        self._records.remove_pod(uid)
        self._tell(EventKind.DELETED, uid, sandbox_id(uid))

    def exec(self, container_id: str, command: Sequence[str], timeout_s: float) -> Completed:
        with self._lock:
            instance = self._find(container_id)
            env = None if instance is None or instance.process is None else instance.env
        if env is None:
            raise RuntimeUnavailable(f"container {container_id} does not run")
        return run_command(command, timeout_s=timeout_s, env=env, cwd="/")

    # --- processes ---

    def _keep(self, instance: Instance) -> None:
        """Remembers the instance, in memory and on disk, and forgets those that are too old."""
        with self._lock:
            sandbox = self._pods[instance.uid]
            same = [i for i in sandbox.instances if i.record.name == instance.record.name]
            old = same[: max(0, len(same) + 1 - KEPT_INSTANCES)]
            sandbox.instances = [i for i in sandbox.instances if i not in old] + [instance]
        self._save(partial(self._records.put_instance, instance.uid, instance.record))
        for gone in old:
            self._save(partial(self._records.remove_instance, gone.uid, gone.record))

    def _close_selector(self) -> None:
        if self._selector is not None:
            self._selector.close()
        os.close(self._wake_r)

    def _turn(self) -> float:
        """Waits for output, an end, a deadline or a new container, and takes what came."""
        selector = self._selector
        assert selector is not None  # noqa: S101 - start() made it
        over: list[Instance] = []
        for key, _ in selector.select(self._until_next_deadline_s()):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_r, 4096)
            elif isinstance(key.data, Output):
                if not key.data.pump():
                    selector.unregister(key.data.fd)
            else:
                over.append(key.data)
        # Whatever they started dies with them, as in a container, by one look through /proc. Before they are reaped:
        # until then their pids are nobody else's. After the output: a closed file's number may be another's.
        end_containers(_leaders(over))
        for instance in over:
            self._reap(instance, selector)
        while self._new:
            instance = self._new.popleft()
            if instance.output is not None:
                selector.register(instance.output.fd, selectors.EVENT_READ, instance.output)
            selector.register(instance.pidfd, selectors.EVENT_READ, instance)
        self._kill_overdue()
        return 0.0

    def _until_next_deadline_s(self) -> float:
        with self._lock:
            nearest = self._deadlines[0][0] if self._deadlines else self._monotonic() + TURN_S
        return min(TURN_S, max(0.0, nearest - self._monotonic()))

    def _kill_overdue(self) -> None:
        monotonic = self._monotonic()
        with self._lock:
            while self._deadlines and self._deadlines[0][0] <= monotonic:
                instance = self._find(heapq.heappop(self._deadlines)[1])
                if instance is not None and instance.pidfd >= 0:
                    _send(instance.pidfd, signal.SIGKILL)

    def _reap(self, instance: Instance, selector: selectors.BaseSelector) -> None:
        process, output = instance.process, instance.output
        if process is None:
            return
        record = ended(instance.record, process.wait(), self._wall())
        selector.unregister(instance.pidfd)
        if output is not None:
            with contextlib.suppress(KeyError):
                selector.unregister(output.fd)
            output.pump()
            output.close()
        with self._ended:
            pidfd, instance.pidfd = instance.pidfd, -1
            instance.record = record
            instance.process = None
            instance.output = None
            self._ended.notify_all()
        os.close(pidfd)
        self._save(partial(self._records.put_instance, instance.uid, record))
        facts = {"uid": instance.uid, "container": record.name, "exit_code": record.exit_code}
        log.info("container ended", extra=facts)
        self._tell(EventKind.STOPPED, instance.uid, record.id)

    # --- small things ---

    def _tell(self, kind: EventKind, uid: str, container_id: str) -> None:
        self._on_event(ContainerEvent(kind, uid, container_id))

    def _output(self, reader: int, path: Path) -> Output:
        try:
            return Output(reader, path, self._log_limit_bytes)
        except OSError as e:
            raise LogFailedError(f"{path} cannot be written: {e.strerror}") from e

    def _pod(self, uid: str) -> RuntimePod:
        sandbox = self._pods.get(uid)
        if sandbox is None:
            return RuntimePod(uid)
        record = sandbox.record
        ip = None if record.host_network else record.ip
        return RuntimePod(
            uid,
            sandboxes=(Sandbox(True, ip, record.host_network, sandbox_id(uid)),),
            containers=tuple(as_runtime_container(instance.record) for instance in sandbox.instances),
        )

    def _find(self, container_id: str) -> Instance | None:
        for sandbox in self._pods.values():
            for instance in sandbox.instances:
                if instance.record.id == container_id:
                    return instance
        return None

    def _any_running(self) -> bool:
        return any(i.process is not None for s in self._pods.values() for i in s.instances)

    def _wake(self) -> None:
        if self._wake_w >= 0:
            with contextlib.suppress(OSError):
                os.write(self._wake_w, b"\0")

    def _save(self, write: Callable[[], None]) -> None:
        """A full disk stops no container; it costs the knowledge of them after a crash, and one line until it works."""
        try:
            write()
        except OSError as e:
            if self._saves:
                log.error("container state not saved", extra={"cause": type(e).__name__, "error": str(e)})
            self._saves = False
            return
        self._saves = True


def _leaders(instances: Sequence[Instance]) -> dict[str, int | None]:
    """Bare container id -> pid of its first process, of those that are not reaped."""
    return {i.env[ENV_CONTAINER_ID]: i.process.pid for i in instances if i.process is not None}


def _send(pidfd: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, number)


def _pause_command() -> list[str]:
    sleep = shutil.which("sleep")
    return [sleep, "infinity"] if sleep else [sys.executable, "-c", "import signal; signal.pause()"]
