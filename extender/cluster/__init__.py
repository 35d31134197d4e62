"""What is seen of the cluster: pods, nodes and the kubelets' Leases.

    observed    JSON keys of a Pod, a Node, a Lease -> the words of `policy.evidence`; pure
    objects     JSON keys of what says nothing of health: DaemonSets, orders, claims, volumes and devices; pure
    heartbeat   age of the Leases by our own clock, and when it counts; pure
    agents      the same of the agents on the nodes, for who looks at them
    health_pods the pods of one list, by node and DaemonSet
    unheard     gates to which no health pod speaks; pure
    index       events in, the evidence of changed nodes out
    around      where DaemonSets can run and what is ordered: what is decided with beside nodes
    volumes     which CSI driver serves a claim; look-ups for requests
    devices     which devices a ResourceClaim asks for; look-ups for requests
    watches     which lists are kept: the reflectors that fill these
    lease_reader  the thread that lists Leases when their watch has nothing to tell

Guaranteed: memory work only under the lock; no verdict; nothing is given out before the nodes and the pods of every
gate are there; a renewed Lease costs no walk and wakes nobody, nor does a condition that is only said again; a field of
the wrong type makes one object be skipped, never the stream stop; what is not required keeps nobody waiting for long.

Imported by `decider` and `services`.
"""
