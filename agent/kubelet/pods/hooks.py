"""Lifecycle hooks: a command, a request or a sleep beside a container. As pkg/kubelet/lifecycle/handlers.go, v1.36.3.

Each runs in a thread of its own; who started it looks at its `Hook` later, and is told when to.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from agent.kubelet.events.event import WARNING, Event, Record, about_pod, record_nothing
from agent.probe.dial import NOT_TLS
from agent.probe.exec import Execute
from agent.probe.go_quoting import quoted
from agent.probe.http import http_send
from agent.probe.result import HandlerError
from agent.probe.targets import TargetError, http_request
from agent.processes.command import ExecTimeout, RuntimeUnavailable
from agent.wire.model import Container, ExecAction, HttpGetAction, LifecycleHook, Pod, SleepAction

log = logging.getLogger(__name__)

REQUEST_LIMIT_S = 3600.0
"""A request takes no longer, whatever time there is: a kubelet would wait for ever."""


class HookFailed(Exception):  # noqa: N818 - what has happened
    """The text is the kubelet's. It may hold secrets of the server's, so it is for the pod's status, not for Events."""


@dataclass(slots=True)
class Hook:
    """One that was started. `error`: why it failed, once it is `over`; None: it went well."""

    over: bool = False
    error: str | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Ends a sleep at once. A command ends with its container, a request at its deadline."""
        self.cancelled.set()


class Hooks:
    """`execute` runs a command in a container; `on_end(uid)` is called from a hook's thread when it is over."""

    def __init__(self, execute: Execute, on_end: Callable[[str], None], record: Record = record_nothing) -> None:
        self._execute = execute
        self._on_end = on_end
        self._record = record

    def start(
        self, pod: Pod, container: Container, container_id: str, hook: LifecycleHook, *, ip: str, limit_s: float
    ) -> Hook:
        """Never waits. `ip`: the pod's address. `limit_s`: after which nobody waits for it; inf: never."""
        started = Hook()

        def run() -> None:
            try:
                self._run(pod, container, container_id, hook, started, ip, limit_s)
            except HookFailed as e:
                started.error = str(e)
            except Exception as e:
                log.exception("lifecycle hook failed", extra={"pod": f"{pod.namespace}/{pod.name}"})
                started.error = f"{type(e).__name__}: {e}"
            finally:
                started.over = True
                self._on_end(pod.uid)

        try:
            threading.Thread(target=run, name=f"hook-{container.name}", daemon=True).start()
        except RuntimeError as e:
            started.over, started.error = True, f"no thread for it: {e}"
            self._on_end(pod.uid)
        return started

    def _run(
        self,
        pod: Pod,
        container: Container,
        container_id: str,
        hook: LifecycleHook,
        started: Hook,
        ip: str,
        limit_s: float,
    ) -> None:
        """Raises HookFailed."""
        where = f'for Container "{container.name}" in Pod "{pod.name}_{pod.namespace}({pod.uid})" failed'
        match hook.action:
            case ExecAction(command):
                self._exec(container_id, command, where, limit_s)
            case HttpGetAction():
                try:
                    self._request(pod, container, hook.action, ip, min(limit_s, REQUEST_LIMIT_S))
                except (HandlerError, TargetError) as e:
                    raise HookFailed(f"HTTP lifecycle hook ({hook.action.path}) {where} - error: {e}") from e
            case SleepAction(seconds):
                if started.cancelled.wait(min(seconds, threading.TIMEOUT_MAX)):
                    error = "container terminated before sleep hook finished"
                    raise HookFailed(f"Sleep lifecycle hook ({seconds}) {where} - error: {error}")
            case None:
                raise HookFailed(f"Cannot run handler: invalid handler {where}")

    def _exec(self, container_id: str, command: tuple[str, ...], where: str, limit_s: float) -> None:
        output = b""
        try:
            done = self._execute(container_id, command, limit_s)
        except (ExecTimeout, RuntimeUnavailable, OSError) as e:
            error = str(e)
        else:
            if done.exit_code == 0:
                return
            output = done.stdout + done.stderr
            error = f"command '{' '.join(command)}' exited with {done.exit_code}: {_text(done.stderr)}"
        said = quoted(output.decode(errors="surrogateescape"))
        raise HookFailed(f"Exec lifecycle hook ([{' '.join(command)}]) {where} - error: {error}, message: {said}")

    def _request(self, pod: Pod, container: Container, action: HttpGetAction, ip: str, limit_s: float) -> None:
        """Any answer will do. One without TLS where TLS was asked for is asked again, plainly."""
        if not (action.host or ip):
            raise TargetError("failed to find networking container")
        request = http_request(action, container, ip, purpose="lifecycle")
        try:
            http_send(request, limit_s)
        except HandlerError as e:
            if NOT_TLS not in str(e):
                raise
            headers = {name: values for name, values in request.headers.items() if name != "Authorization"}
            http_send(replace(request, url=replace(request.url, scheme="http"), headers=headers), limit_s)
            host = _text(request.url.host.encode("latin-1"))
            text = f"request to HTTPS lifecycle hook {host} got HTTP response, retry with HTTP succeeded"
            self._record(Event(about_pod(pod), WARNING, "LifecycleHTTPFallback", text))


def _text(output: bytes) -> str:
    return output.decode(errors="replace")
