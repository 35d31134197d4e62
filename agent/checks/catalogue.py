"""Makes runnable checks of configured ones: exec, httpGet, tcpSocket and the built-in cni."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

from agent import settings
from agent.checks.builtin.cni import check_cni
from agent.checks.health import CheckState, Finding, Severity, Thresholds
from agent.model import Container, HttpGetAction
from agent.probe.http import http_get
from agent.probe.outcome import OUTPUT_LIMIT_BYTES, HandlerError, HandlerResult, Outcome
from agent.probe.targets import TargetError, http_request
from agent.probe.tcp import tcp_connect
from agent.processes.command import ExecTimeout, RuntimeUnavailable, run_command

Run = Callable[[], Finding]


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """A check ready to run. `run` makes one run and should be back by `timeout_s`; times in seconds."""

    name: str
    run: Run
    severity: Severity = Severity.GATE
    initial_delay_s: float = 0.0
    period_s: float = 10.0
    timeout_s: float = 1.0
    thresholds: Thresholds = Thresholds()  # noqa: RUF009 - frozen, so one is enough for all


def check_spec(check: settings.Check) -> CheckSpec:
    """Zeros become the defaults, as the API server defaults a Probe."""
    timeout_s = float(check.timeout_seconds or 1)
    return CheckSpec(
        name=check.name,
        run=_run(check, timeout_s),
        severity=Severity(check.severity),
        initial_delay_s=float(check.initial_delay_seconds),
        period_s=float(check.period_seconds or 10),
        timeout_s=timeout_s,
        thresholds=Thresholds(
            check.success_threshold or 1, check.failure_threshold or 3, keep_unknown=check.unknown == "keep"
        ),
    )


def _run(check: settings.Check, timeout_s: float) -> Run:
    if check.cni is not None:
        cni = check.cni
        return lambda: check_cni(Path(cni.conf_dir), [Path(folder) for folder in cni.bin_dirs])
    if check.exec is not None:
        return ExecCheck(check.exec.command, timeout_s)
    if check.http_get is not None:
        return _http_check(check.http_get, timeout_s)
    assert check.tcp_socket is not None  # noqa: S101 - settings allow no check without a handler
    tcp = check.tcp_socket
    return lambda: _finding(tcp_connect(tcp.host, tcp.port, timeout_s))


class ExecCheck:
    """Runs a command; one that outlived SIGKILL (uninterruptible sleep) is not started a second time beside itself."""

    def __init__(self, command: tuple[str, ...], timeout_s: float) -> None:
        self._command = command
        self._timeout_s = timeout_s
        self._leftover: Popen[bytes] | None = None

    def __call__(self) -> Finding:
        if self._leftover is not None:
            if self._leftover.poll() is None:
                return Finding(CheckState.HUNG, f"process {self._leftover.pid} cannot be killed")
            self._leftover = None
        try:
            done = run_command(self._command, timeout_s=self._timeout_s)
        except ExecTimeout as e:
            self._leftover = e.leftover
            output = e.output.decode(errors="replace").strip()
            return Finding(CheckState.HUNG, f"killed after {self._timeout_s:g} s" + (f"; {output}" if output else ""))
        except RuntimeUnavailable as e:
            return Finding(CheckState.UNKNOWN, str(e))
        output = (done.stdout + done.stderr)[:OUTPUT_LIMIT_BYTES].decode(errors="replace")
        if done.exit_code == 0:
            return Finding(CheckState.PASSED, output)
        ended = f"signal {-done.exit_code}" if done.exit_code < 0 else f"exit code {done.exit_code}"
        return Finding(CheckState.FAILED, f"{ended}: {output}" if output.strip() else ended)


def _http_check(check: settings.HttpGet, timeout_s: float) -> Run:
    headers = tuple((header.name, header.value) for header in check.http_headers)
    action = HttpGetAction(
        port=check.port, path=check.path or "/", host=check.host, scheme=check.scheme, headers=headers
    )
    nowhere = Container(name="")

    def run() -> Finding:
        try:
            return _finding(http_get(http_request(action, nowhere, ""), timeout_s))
        except TargetError as e:
            return Finding(CheckState.UNKNOWN, str(e))
        except HandlerError as e:
            # kubelet throws this result away and never notices a server that stalls in its body; a check does notice.
            return Finding(CheckState.FAILED, str(e))

    return run


def _finding(outcome: Outcome) -> Finding:
    passed = outcome.result in (HandlerResult.SUCCESS, HandlerResult.WARNING)
    return Finding(CheckState.PASSED if passed else CheckState.FAILED, outcome.output)
