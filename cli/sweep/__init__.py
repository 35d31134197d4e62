"""Removal of readygate: `readygate unregistered` before it, `readygate sweep` after it.

    registration   checks that no kube-scheduler calls the extenders any more
    command        removes conditions, annotations, the leader Lease and the test pod

Guarantees: nothing of others is removed, and the orders of operators stay. A refused change does not stop the others.

Imported by `cli.__main__`; the chart runs both commands as hooks.
"""
