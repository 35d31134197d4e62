"""What is seen of the cluster: pods, nodes and the kubelets' Leases.

    observed    JSON keys of a Pod, a Node, a Lease -> the words of `policy.evidence`; pure
    heartbeat   age of the Leases by our own clock, and when it counts; pure
    index       events in, the evidence of changed nodes out
    lease_reader  the thread that lists Leases when their watch has nothing to tell

Guaranteed: memory work only under the lock; no verdict; nothing is given out before both lists are there; a renewed
Lease costs no walk and wakes nobody; a field of the wrong type makes one object be skipped, never the stream stop.

Imported by `decider` and `services`.
"""
