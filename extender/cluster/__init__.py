"""What is observed of the cluster (pods, nodes, Leases), and the thread that decides on it.

    observed          JSON keys of a Pod, a Node, a Lease -> the values of `policy.evidence`; pure
    objects           JSON keys of other objects: DaemonSets, orders, claims, volumes, devices; pure
    lease_age         how old each Lease is, and when its age counts; pure
    heartbeats        Leases of kubelets, or of agents, as a thread-safe store
    lease_reader      the thread that lists Leases when their watch is silent
    health_pods       the pods of one list, by node and DaemonSet
    silent_gates      gates without any health pod; pure
    pod_starts        pods that do not start, as the API server reports them
    index             events in, the evidence of changed nodes out
    placement_inputs  where DaemonSets can run, and the orders of operators
    volumes           which CSI driver serves a claim; look-ups for requests
    devices           which devices a ResourceClaim requests; look-ups for requests
    watches           the reflectors that fill these
    decider           the thread that decides: evidence in, a new snapshot out

Guaranteed: only memory work under the lock. Only the decider knows verdicts. No evidence is given out before the nodes
and the pods of every gate are listed. A renewed Lease, or a repeated condition, costs no walk and wakes no thread. A
field of a wrong type makes one object be skipped and never stops the stream. Optional lists delay a start only briefly.

Imports `policy`. Imported by `process` only.
"""
