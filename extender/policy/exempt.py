"""Pure: which pods are never refused a node. Asked before any health is looked up, so it needs no cache.

Without these rules the health pod of a new node could not be placed: kube-scheduler places DaemonSet pods too, its node
would be closed for want of a health pod, and it would wait for itself (kubernetes issue 91489 is the same knot).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from extender.settings import Gate
from kube import contract
from kube.objects import OwnerReference, daemon_set_of

SYSTEM_CRITICAL_CLASSES = frozenset({"system-node-critical", "system-cluster-critical"})
SYSTEM_CRITICAL_PRIORITY = 2_000_000_000  # kubernetes pkg/apis/scheduling: twice the highest a user may define


class Exemption(StrEnum):
    """Why a pod is exempt: one constant word; the empty one counts as false."""

    NONE = ""
    HEALTH_POD = "health-pod"
    DAEMON_SET = "daemonset"
    READYGATE = "readygate"
    NAMESPACE = "namespace"
    SYSTEM_CRITICAL = "system-critical"
    LABEL = "label"


@dataclass(frozen=True, slots=True)
class Rules:
    """health_daemon_set: None if any DaemonSet of health_namespace may own the health pods. label: "" = no opt-out."""

    health_namespace: str
    health_daemon_set: str | None
    daemon_set_pods: bool = True
    namespaces: frozenset[str] = frozenset()
    label: str = ""


def rules_of(gate: Gate) -> Rules:
    return Rules(
        health_namespace=gate.health_pods.namespace,
        health_daemon_set=gate.health_pods.daemon_set,
        daemon_set_pods=gate.exempt.daemon_set_pods,
        namespaces=frozenset(gate.exempt.namespaces),
        label=gate.exempt.label or "",
    )


def exemption_of(
    rules: Rules,
    *,
    namespace: str,
    labels: Mapping[str, str] | None,
    owners: Sequence[OwnerReference] | None,
    priority_class: str,
    priority: int | None,
) -> Exemption:
    """The first rule that holds for the pod, in the order of Exemption."""
    daemon_set = daemon_set_of(owners)
    if daemon_set and namespace == rules.health_namespace and rules.health_daemon_set in (None, daemon_set):
        return Exemption.HEALTH_POD
    if daemon_set and rules.daemon_set_pods:
        return Exemption.DAEMON_SET
    if namespace == contract.NAMESPACE:
        return Exemption.READYGATE
    if namespace in rules.namespaces:
        return Exemption.NAMESPACE
    if priority_class in SYSTEM_CRITICAL_CLASSES or (priority is not None and priority >= SYSTEM_CRITICAL_PRIORITY):
        return Exemption.SYSTEM_CRITICAL
    if rules.label and labels and labels.get(rules.label, "false") != "false":
        return Exemption.LABEL
    return Exemption.NONE
