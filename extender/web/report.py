"""The shape of GET /api/v1/nodes. Pure: `extender.web.api` writes it, `cli` reads it."""

import msgspec


class NodeVerdict(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """pod: `namespace/name` of the deciding health pod. evidence: free text of the cluster, one line.

    heartbeat_age_seconds: since the kubelet last renewed its Lease, null if that is not looked at.
    """

    node: str
    open: bool
    reason: str
    since_seconds: float
    pod: str
    evidence: str
    heartbeat_age_seconds: float | None


class NodeVerdicts(msgspec.Struct, frozen=True, rename="camel"):
    """blind: why no verdict is given to kube-scheduler at present, "" if they are."""

    blind: str
    nodes: list[NodeVerdict]
