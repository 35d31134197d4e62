"""Kubernetes JSON to `agent.wire.model` and back.

    pod        Pod: spec and metadata, read only
    manifest   of a static pod: read, with its name, uid and annotations
    documents  YAML and JSON as the kubelet reads its manifests
    placement  of its spec what it asks of its node
    status     PodStatus: read, and written with the fields that Go writes
    node       Node: its labels, taints, pod CIDRs and status, alike
    lease      Lease: a new one, and renewals that keep what others wrote
    event      what creates an Event, and counts it again
    token      mode node, TokenRequest: asked for, and what was given
    endpoint_slice, network_policy  read only: which nodes have an agent, and what stops packets between agents
    condition  modes pod and node, our one condition: read from a reply, written as a patch; loads none of the others

Guaranteed: fields we do not model survive a merge (`PodStatus.extra`); a wrong type raises msgspec.DecodeError and
nothing else. Keys are spelled here and nowhere else, but for those few that `status.patch` merges by.

Imported by `checks`, `events`, `identity`, `opinion`, `pods`, `status`, `node`, `report` and `modes`; imports `model`
and `kube` only.
"""
