"""What is seen of the cluster: pods, nodes and the kubelets' Leases.

    observed    JSON keys of a Pod, a Node, a Lease -> the words of `policy`; pure
    heartbeat   age of the Leases by our own clock; pure
    index       events in, node -> reason out

Guaranteed: memory work only under the lock; nothing before both lists are there; a field of the wrong type makes one
object be skipped, never the stream stop.

Imported by `services`.
"""
