"""Answers kube-scheduler: which of these nodes may take this pod, and why not.

Reading order, and what each room may do:

    verdict     pure   health pods, node, heartbeat of one node -> open, or closed with one constant reason
    heartbeat   pure   age of the kubelets' Leases by our own clock
    exempt      pure   which pods are never held back
    filtering   pure   names and reasons -> survivors and refusals
    observed           what is read of a Pod, a Node, a Lease; JSON -> the words of `verdict`
    wire               ExtenderArgs and ExtenderFilterResult, the scheduler's words, to and from bytes
    settings           the configuration file
    report             the shape of /api/v1/nodes, which `cli` reads
    index              events in, node -> reason out; remembers which closed nodes were refused to a pod
    publisher          the kick: one Node write after a release, in its own thread
    metrics            counters of the request path, and what a scrape reads from the others
    services           puts the above together; start(), stop()
    routes, health, explain, app     HTTP: /filter; /livez /readyz /metrics; /api/v1/nodes
    body               reads a request body without letting it hold a thread
    server, gunicorn.conf.py, __main__     the process

Threads: one per reflector (pods, nodes, Leases), one clock, one publisher; 16 answer requests and never wait for the
API server. A request costs one look-up per name: the verdict is made when an event arrives, not when it is asked for.
"""
