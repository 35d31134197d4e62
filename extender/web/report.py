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
    """not_answering: why kube-scheduler gets no verdicts at present, "" if it does."""

    not_answering: str
    nodes: list[NodeVerdict]
