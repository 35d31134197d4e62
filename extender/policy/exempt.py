"""Pure: which pods are never held back. Asked before any health is looked up, so it needs no cache.

Without these rules the health pod of a new node could not be placed: kube-scheduler places DaemonSet pods too, its node
would be closed for want of a health pod, and it would wait for itself (kubernetes issue 91489 is the same knot).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kube import contract
from kube.objects import OwnerReference, daemon_set_of

SYSTEM_CRITICAL_CLASSES = frozenset({"system-node-critical", "system-cluster-critical"})
SYSTEM_CRITICAL_PRIORITY = 2_000_000_000  # kubernetes pkg/apis/scheduling: twice the highest a user may define

NOT_EXEMPT = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """health_daemon_set: None if any DaemonSet of health_namespace may own the health pods. label: "" = no opt-out."""

    health_namespace: str
    health_daemon_set: str | None
    daemon_set_pods: bool = True
    namespaces: frozenset[str] = frozenset()
    label: str = ""


def exemption(
    rules: Rules,
    *,
    namespace: str,
    labels: Mapping[str, str] | None,
    owners: Sequence[OwnerReference] | None,
    priority_class: str,
    priority: int | None,
) -> str:
    """Why the pod is exempt, one constant word, or NOT_EXEMPT."""
    daemon_set = daemon_set_of(owners)
    if daemon_set and namespace == rules.health_namespace and rules.health_daemon_set in (None, daemon_set):
        return "health-pod"
    if daemon_set and rules.daemon_set_pods:
        return "daemonset"
    if namespace == contract.NAMESPACE:
        return "readygate"
    if namespace in rules.namespaces:
        return "namespace"
    if priority_class in SYSTEM_CRITICAL_CLASSES or (priority is not None and priority >= SYSTEM_CRITICAL_PRIORITY):
        return "system-critical"
    if rules.label and labels and labels.get(rules.label, "false") != "false":
        return "label"
    return NOT_EXEMPT
