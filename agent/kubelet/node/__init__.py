"""Mode `kubelet`: the Node object, its status and its Lease.

    machine        what is read of this machine, once
    cgroups        limits that control groups set on it
    observed       what the runtime and the measurements report for the status; pure
    facts          the Node object and its status; pure
    reserved       capacity that pods cannot have; pure
    pressure       when the node is under pressure: thresholds, grace periods, hysteresis; pure
    measure        measures what the machine has left, in a thread
    oom            which lines of the kernel log report that the machine was out of memory; pure
    oom_watcher    writes an Event for each of them
    registration   makes the Node and keeps its status true
    lease          renews the node's Lease
    outage         writes that fail for a while: two lines of log, growing pauses

Mirrors the kubelet's pkg/kubelet/kubelet_node_status.go, nodestatus/setters.go and component-helpers' Lease controller.
Guaranteed: a deleted Node is made again; an API server that is away neither ends a thread nor makes the agent
unhealthy; of the Node only labels of ours, status and Lease are written, and, of a new one, taints and pod CIDR.

Imported by `pods`, `settings` and `modes`.
"""
