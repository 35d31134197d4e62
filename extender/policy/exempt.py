"""Pure: which pods are never refused a node, and which pods are always refused. These rules come before any look-up of
health, so they need no cache.

Without them the health pod of a new node could not be placed. kube-scheduler places DaemonSet pods, too: their node is
closed while it has no health pod, so the pod would wait for itself (the same knot as kubernetes issue 91489).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from extender.config.settings import Settings
from kube import contract
from kube.objects import OwnerReference, daemon_set_of

ALWAYS = frozenset({"kube-system"})  # whatever is configured: the control plane needs its own pods to recover
EVERYWHERE = "*"
SYSTEM_CRITICAL_CLASSES = frozenset({"system-node-critical", "system-cluster-critical"})
# kubernetes pkg/apis/scheduling: twice the highest priority that a user may define
SYSTEM_CRITICAL_PRIORITY = 2_000_000_000


class Exemption(StrEnum):
    """Why a pod is exempt: one constant word; the empty word is false."""

    NONE = ""
    HEALTH_POD = "health-pod"
    DAEMON_SET = "daemonset"
    READYGATE = "readygate"
    NAMESPACE = "namespace"
    SYSTEM_CRITICAL = "system-critical"
    LABEL = "label"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of the configuration.

    own: readygate's namespace. health: namespace and name of each DaemonSet of health pods, None for any of the
    namespace. label: the label that opts out, "" = none. label_namespaces: where that label counts, None = everywhere.
    """

    own: str = contract.NAMESPACE
    health: frozenset[tuple[str, str | None]] = frozenset()
    daemon_set_pods: bool = True
    namespaces: frozenset[str] = frozenset()
    label: str = ""
    label_namespaces: frozenset[str] | None = frozenset()


def rules_of(settings: Settings) -> Rules:
    exempt = settings.exempt
    pods = [gate.health_pods for gate in settings.gates if gate.health_pods is not None]
    return Rules(
        own=settings.namespace,
        health=frozenset((one.namespace, one.daemon_set) for one in pods),
        daemon_set_pods=exempt.daemon_set_pods,
        namespaces=frozenset(exempt.namespaces) | ALWAYS,
        label=exempt.label or "",
        label_namespaces=None if EVERYWHERE in exempt.label_namespaces else frozenset(exempt.label_namespaces),
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
    """Returns the first rule that applies to the pod, in the order of Exemption."""
    daemon_set = daemon_set_of(owners) if owners else ""
    if daemon_set and ((namespace, daemon_set) in rules.health or (namespace, None) in rules.health):
        return Exemption.HEALTH_POD
    if daemon_set and rules.daemon_set_pods:
        return Exemption.DAEMON_SET
    if namespace == rules.own:
        return Exemption.READYGATE
    if namespace in rules.namespaces:
        return Exemption.NAMESPACE
    if priority_class in SYSTEM_CRITICAL_CLASSES or (priority is not None and priority >= SYSTEM_CRITICAL_PRIORITY):
        return Exemption.SYSTEM_CRITICAL
    if rules.label and labels and labels.get(rules.label, "false") != "false":
        where = rules.label_namespaces
        if where is None or namespace in where:
            return Exemption.LABEL
    return Exemption.NONE


def is_canary(
    rules: Rules, *, namespace: str, labels: Mapping[str, str] | None, owners: Sequence[OwnerReference] | None
) -> bool:
    """Returns whether all nodes are refused to the pod on purpose. A canary is in readygate's own namespace and has no
    controller, so no template of a workload can create one."""
    return namespace == rules.own and not owners and labels is not None and labels.get(contract.LABEL_CANARY) == "true"
