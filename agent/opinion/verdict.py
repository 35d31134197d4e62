"""Pure: from checks and findings to the condition of a health pod, and to what /readyz says.

Findings that close are ProbesFailed, KubeletDisagrees, KubeletSilent and PlegUnhealthy; the others are only said. The
condition's reason is the checks' where they fail, else that of the first finding, in this order: what is known of the
node itself explains most.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.checks.health import MESSAGE_LIMIT_BYTES, NodeHealth, condition_message, readyz_text
from agent.report.condition import Condition
from agent.wire.condition import (
    REASON_CHECKS_PASSED,
    REASON_KUBELET_DISAGREES,
    REASON_KUBELET_SILENT,
    REASON_PLEG_UNHEALTHY,
    REASON_PROBES_FAILED,
    REASON_STARTING,
)
from component.text import one_line
from kube import contract

CLOSING = (REASON_KUBELET_SILENT, REASON_PLEG_UNHEALTHY, REASON_KUBELET_DISAGREES, REASON_PROBES_FAILED)
# Said, but closes nothing. Of a silent Lease the extender closes the node, which sees whether all are silent at once.
KUBELET_LEASE_SILENT = "KubeletLeaseSilent"
KUBELET_SAYS_UNREADY = "KubeletSaysUnready"
API_SERVER_AWAY = "APIServerAway"
PODS_UNKNOWN = "PodsUnknown"
PROBE_NOT_MADE = "ProbeNotMade"
RUNTIME_SILENT = "RuntimeSilent"
SAID = (KUBELET_LEASE_SILENT, KUBELET_SAYS_UNREADY, API_SERVER_AWAY, PODS_UNKNOWN, PROBE_NOT_MADE, RUNTIME_SILENT)
FINDINGS = (*CLOSING, *SAID)


@dataclass(frozen=True, slots=True)
class Finding:
    """`reason`: one of FINDINGS, constant. `text`: for people, one line. `pod`: namespace/name, "" for the node."""

    reason: str
    text: str
    pod: str = ""


def closing(findings: Sequence[Finding]) -> list[Finding]:
    """Those that close, the one that explains most first."""
    return sorted((f for f in findings if f.reason in CLOSING), key=lambda f: CLOSING.index(f.reason))


def condition_of(health: NodeHealth | None, findings: Sequence[Finding]) -> Condition | None:
    """Of a pod, by the findings on the node and on itself; None while it is too early to say anything.

    health: of the checks that count for it; None where none does, of no check where those have not said anything.
    """
    closes = closing(findings)
    if health is not None and health.reason == REASON_STARTING and not closes:
        return None
    healthy = health is None or health.healthy or health.reason == REASON_STARTING
    identity = (None if health is None else health.identity, tuple(finding.reason for finding in closes))
    parts = [finding.text for finding in closes]
    if health is not None and health.checks:
        parts.append(condition_message(health))
    message = one_line("; ".join(parts), limit_bytes=MESSAGE_LIMIT_BYTES) if parts else "no check counts for this pod"
    if healthy and not closes:
        reason = REASON_CHECKS_PASSED if health is None else health.reason
        return Condition(contract.STATUS_TRUE, reason, message, identity)
    reason = closes[0].reason if healthy or health is None else health.reason
    return Condition(contract.STATUS_FALSE, reason, message, identity)


def readyz(health: NodeHealth | None, findings: Sequence[Finding], wall: float) -> tuple[bool, str]:
    """Whether the node is healthy, and a line for each thing to say of it. wall: seconds since the epoch."""
    ok = not closing(findings) and (health is None or health.healthy)
    lines = "" if health is None else readyz_text(health, wall).removeprefix("ok\n")
    lines += "".join(f"{f.reason}: {f'{f.pod}: ' if f.pod else ''}{f.text}\n" for f in findings)
    return ok, f"ok\n{lines}" if ok else lines
