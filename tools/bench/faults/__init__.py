"""How soon a fault of a host keeps pods off it, and how soon they come back (`make bench-faults`; ring 3, root).

    plan     what is tried: faults, and the checks that watch for them
    stage    the cluster with readygate on it, by the playbooks, and what the checks look at
    watch    when the extender closes and opens a node, seen on its own host
    words    what its kubelet and its agent say of a node meanwhile
    rounds   one fault on one host: injected, closed, a pod refused, healed, the pod bound
    dead     a host without a network
    rival    node-problem-detector on the same hosts, through the same faults
    results  from the rounds to figures and tables (pure)

All hosts of ring 3 and this machine share one clock, so times taken on any of them compare.
"""
