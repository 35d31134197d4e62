"""The extender: answers kube-scheduler which of its nodes may take a pod, and why not the others.

    __main__  the command `readygate-extender`: settings -> server
    process   gunicorn's master and one worker; everything behind the verbs starts in the worker
    web       the status API and the dashboard, in a process of their own
    serve     HTTP for kube-scheduler, in one thread
    verbs     POST /filter, /preempt, /prioritize, /bind: bytes to bytes
    outlets   writes to the API server that follow from decisions: kick, Node condition, Events
    feed      the snapshot, sent to the process of the status API
    why       what was refused to which pod, and what happened
    cluster   what is observed of pods, nodes and Leases; the thread that decides
    policy    open or closed, and why; the snapshot that all other rooms read; pure
    config    the configuration file

Each room imports only those below it (import-linter, "the extender's rooms"). May use `kube` and `component`; knows
nothing of `agent`. A request costs one look-up per name, because decisions are made when events arrive and not when
kube-scheduler asks.
"""
