"""The rights that the extender needs with its configuration. Pure.

Mirrors the roles that charts/readygate/templates/extender/rights.yaml makes.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from extender.settings import Settings
from kube import contract

LEASES = "coordination.k8s.io"
DEVICES = "resource.k8s.io"


class Need(NamedTuple):
    """One right that the extender needs."""

    verb: str
    group: str
    resource: str
    namespace: str = ""  # "": the whole cluster
    name: str = ""  # "": any object
    sub: str = ""  # the subresource


def needed(settings: Settings, namespace: str) -> Sequence[Need]:
    """The rights that these settings need. namespace: of the extender."""
    of_pods = [gate.health_pods for gate in settings.gates if gate.health_pods is not None]
    pods = sorted({one.namespace for one in of_pods})
    sets = sorted({one.namespace for one in of_pods if one.daemon_set})
    reads = [("", "pods", one, "") for one in pods] + [("apps", "daemonsets", one, "") for one in sets]
    reads.append(("", "nodes", "", ""))
    if settings.orders.config_map is not None:
        reads.append(("", "configmaps", namespace, settings.orders.config_map))
    if settings.heartbeat.limit_seconds:
        reads.append((LEASES, "leases", contract.NAMESPACE_NODE_LEASE, ""))
    if any(gate.pod_starts is not None for gate in settings.gates):
        reads.append(("", "pods", "", ""))
    if any(gate.pods_for.csi_drivers for gate in settings.gates):
        reads += [("", "persistentvolumeclaims", "", ""), ("", "persistentvolumes", "", "")]
        reads.append(("storage.k8s.io", "storageclasses", "", ""))
    if any(gate.pods_for.by_device for gate in settings.gates):
        reads += [(DEVICES, what, "", "") for what in ("resourceclaims", "resourceclaimtemplates", "deviceclasses")]
    return [*(Need(verb, *what) for what in reads for verb in ("list", "watch")), *_writes(settings, namespace)]


def _writes(settings: Settings, namespace: str) -> Iterator[Need]:
    outlets = settings.outlets
    if settings.kick.enabled:
        yield Need("patch", "", "nodes")
    if outlets.node_condition.enabled:
        yield Need("patch", "", "nodes", sub="status")
    if outlets.events.enabled:
        yield Need("create", "", "events")
    if outlets.node_condition.enabled or outlets.events.enabled:
        yield Need("create", LEASES, "leases", namespace)
        yield Need("get", LEASES, "leases", namespace, contract.NAME_EXTENDER)
        yield Need("update", LEASES, "leases", namespace, contract.NAME_EXTENDER)
