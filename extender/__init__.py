"""Answers kube-scheduler: which of these nodes may take this pod, and why not.

    __main__    the command: settings -> server
    process     gunicorn: one process, its worker, the application
    verbs       POST /filter, /preempt, /prioritize, /bind; no API call, no log, no lock that waits
    people      the process of the people, its command; gunicorn as it comes
    web         /livez /readyz /metrics, /api/v1/nodes; Flask
    services    what is behind the verbs, put together; start(), stop()
    feed        the snapshot, from the process that answers kube-scheduler to that of the people
    decider     the thread that decides: evidence in, a new snapshot out
    cluster     what is seen of pods, nodes and Leases; no verdict
    outlets     what follows from a change: the kick, in a thread of its own
    policy      open or closed, and why; the snapshot all others read; pure
    source      types: what an answer is made of
    status      what the process that answers says of itself; pure
    counts      of the verbs; pure        settings     the configuration file
    deadlines   which name is due when    foreground   gunicorn, as both commands run it
    command     what both commands do before they serve

Each room imports only those below it (import-linter, "the extender's rooms"). May use `kube` and `component`; knows
nothing of `agent`. A request costs one look-up per name: what holds is decided when an event arrives, not when it is
asked for.
"""
