"""Kubernetes JSON to the agent's model and back, and the model itself.

    model             pods, containers, probes, statuses: frozen, no JSON
    placement_model   what a pod asks of its node, and taints; pure
    containers        what a container runtime knows of a pod; pure
    semantics         which kubelet is reproduced: profile, feature gates, fixes; pure
    histogram         durations, counted by upper bounds; pure
    setting_types     types of settings that several rooms have; pure
    yaml_lines        the line of a YAML file that a key is on; pure
    pod               Pod: spec and metadata, read only
    placement         what a pod's spec asks of its node
    manifest          the manifest of a static pod, with its name, uid and annotations
    documents         YAML and JSON as the kubelet reads its manifests
    status            PodStatus: read, and written with the fields that Go writes
    node              Node: labels, taints, pod CIDRs, addresses, capacity, conditions and the rest of its status
    lease             Lease: a new one, and renewals that keep the fields of others
    event             creates an Event, and counts it again
    token             TokenRequest: the request and its reply
    endpoint_slice    EndpointSlice, read only: which nodes have an agent
    network_policy    NetworkPolicy, read only: what stops packets between agents
    condition         the condition on a health pod: read from a reply, written as a patch

Guaranteed: fields that are not modelled survive a merge (`PodStatus.extra`); a wrong type raises msgspec.DecodeError
and nothing else. Keys are spelled here only, but for those few that `kubelet.status.patch` merges by.

Imported by every room above it; imports `kube` and `component` only.
"""
