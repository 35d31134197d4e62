"""Mode `kubelet`: what the node says of itself.

    machine        what is read of this machine, once
    cgroups        limits that control groups set on it
    found          what a runtime and what measures the machine have found; pure
    facts          the Node object and its status; pure
    reserved       what of its capacity pods may not have; pure
    pressure       when it is under pressure: thresholds, grace periods, hysteresis; pure
    measure        what the machine has left, and the thread that looks
    oom            which lines of the kernel's log say that the machine was out of memory; pure
    oom_watcher    writes an Event for each of them
    registration   makes the Node and keeps its status true
    lease          its heartbeat
    outage         writes that fail for a while: two lines of log, growing pauses

Mirrors the kubelet's pkg/kubelet/kubelet_node_status.go, nodestatus/setters.go and component-helpers' Lease controller.
Guaranteed: a Node that somebody deleted is made again; an API server that is away neither ends a thread nor makes the
agent unhealthy; nothing of the Node is written but labels of ours, its status and its Lease, and, of a new one, its
taints and pod CIDR.

Imported by `agent.modes` only.
"""
