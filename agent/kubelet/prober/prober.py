"""From a probe in a pod's spec to a result: handler, retries, events (pkg/kubelet/prober/prober.go)."""

import logging
from collections.abc import Callable
from typing import assert_never

from agent.probe.exec import Execute, exec_command
from agent.probe.grpc import grpc_check
from agent.probe.http import http_get
from agent.probe.result import HandlerError, HandlerResult, Outcome, ProbeErrored
from agent.probe.targets import TargetError, expand_command, http_request, resolve_port
from agent.probe.tcp import tcp_connect
from agent.wire.model import (
    Container,
    ExecAction,
    GrpcAction,
    HttpGetAction,
    Pod,
    PodStatus,
    Probe,
    ProbeType,
    Result,
    TcpSocketAction,
)

log = logging.getLogger(__name__)

ATTEMPTS = 3  # maxProbeRetries: back to back, only while the probe errors
EVENT_WARNING = "Warning"
REASON_UNHEALTHY = "Unhealthy"
REASON_PROBE_WARNING = "ProbeWarning"

RecordEvent = Callable[[Pod, Container, str, str, str], None]
"""(pod, container, Normal or Warning, reason, message). Called on every failed probe, without any limit."""

CutOff = Callable[[], bool]
"""Whether no command is to be run any more: each errors."""


class Prober:
    """Makes probes for workers. `execute` runs a command in a running container."""

    def __init__(self, execute: Execute, record_event: RecordEvent | None = None) -> None:
        self._execute = execute
        self._record_event = record_event

    def probe(
        self,
        probe_type: ProbeType,
        pod: Pod,
        status: PodStatus,
        container: Container,
        container_id: str,
        cut_off: CutOff = lambda: False,
    ) -> Result:
        """SUCCESS or FAILURE. Raises ProbeErrored when the probe could not be made: the result is to be thrown away."""
        try:
            spec = container.probe(probe_type)
        except ValueError as e:
            raise ProbeErrored(str(e)) from e
        if spec is None:
            return Result.SUCCESS
        try:
            outcome = self._with_retries(spec, pod, status, container, container_id, cut_off)
        except HandlerError as e:
            self._event(
                pod, container, REASON_UNHEALTHY, f"{probe_type} probe errored and resulted in {e.result} state: {e}"
            )
            raise ProbeErrored(str(e)) from e
        match outcome.result:
            case HandlerResult.SUCCESS:
                return Result.SUCCESS
            case HandlerResult.WARNING:
                self._event(pod, container, REASON_PROBE_WARNING, f"{probe_type} probe warning: {outcome.output}")
                return Result.SUCCESS
            case HandlerResult.FAILURE:
                self._event(pod, container, REASON_UNHEALTHY, f"{probe_type} probe failed: {outcome.output}")
                return Result.FAILURE
            case HandlerResult.UNKNOWN:
                return Result.FAILURE

    def _with_retries(
        self, spec: Probe, pod: Pod, status: PodStatus, container: Container, container_id: str, cut_off: CutOff
    ) -> Outcome:
        for _ in range(ATTEMPTS - 1):
            try:
                return self.attempt(spec, pod, status, container, container_id, cut_off)
            except HandlerError:
                log.debug("probe errored, trying again", extra={"pod": pod.name, "container": container.name})
        return self.attempt(spec, pod, status, container, container_id, cut_off)

    def attempt(
        self,
        spec: Probe,
        pod: Pod,
        status: PodStatus,
        container: Container,
        container_id: str,
        cut_off: CutOff = lambda: False,
    ) -> Outcome:
        """One attempt. Raises HandlerError."""
        timeout_s = float(spec.timeout_s)
        try:
            match spec.action:
                case ExecAction(command):
                    _refuse(cut_off)
                    expanded = expand_command(command, container.env)
                    outcome = exec_command(self._execute, container_id, expanded, timeout_s)
                    _refuse(cut_off)  # meanwhile
                    return outcome
                case HttpGetAction():
                    return http_get(http_request(spec.action, container, status.pod_ip), timeout_s)
                case TcpSocketAction(port, host):
                    return tcp_connect(host or status.pod_ip, resolve_port(port, container), timeout_s)
                case GrpcAction(port, service):
                    return grpc_check(status.pod_ip, port, service, timeout_s)
                case None:
                    where = f"{pod.name}_{pod.namespace}({pod.uid}):{container.name}"
                    raise HandlerError(f"missing probe handler for {where}", HandlerResult.UNKNOWN)
                case _:
                    assert_never(spec.action)
        except TargetError as e:
            raise HandlerError(str(e), HandlerResult.UNKNOWN) from e

    def _event(self, pod: Pod, container: Container, reason: str, message: str) -> None:
        if self._record_event is not None:
            self._record_event(pod, container, EVENT_WARNING, reason, message)


def _refuse(cut_off: CutOff) -> None:
    if cut_off():
        raise HandlerError("context canceled", HandlerResult.UNKNOWN)
