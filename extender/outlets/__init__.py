"""Writes to the API server that follow from decisions, each in its own thread and never in the request path.

    schedule             when kube-scheduler must be woken, and by a write to which node (pure)
    kick                 the thread that writes one Node after a release, so that kube-scheduler retries refused pods
    election             which replica writes, by a Lease (pure)
    leader               the thread that holds that Lease, or waits for it
    condition            the thread that writes the Nodes' condition
    node_condition_text  what that condition must say of a node (pure)
    observed_conditions  what it says, as the Nodes were observed
    write_order          which node's condition is written next (pure)
    events               the thread that writes Events on Nodes and Pods
    event_text           what they say (pure)
    pending_writes       which Events wait, and when they are written (pure)
    rate_limit           how often something may be done (pure)
    wire                 JSON of objects that are read and written (pure)
    writers              condition and Events, wired by the settings

Guaranteed: a stuck or refused outlet delays neither a verdict nor an answer. Failures are retried with back-off and
counted.

Imports `policy` and `config`. Imported by `process`.
"""
