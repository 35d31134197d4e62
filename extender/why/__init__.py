"""Why: what was refused to which pod, what happened to nodes, and what gates in shadow would have done.

    attempts   what the verbs append for each call: no lock, no copy, bounded
    recorder   the thread that takes them, and remembers
    journal    what is remembered, for other threads to read, and as steps for who follows
    memory     all that is remembered, made of entries only; pure
    entries    what happens, as it is remembered and goes over the feed; pure
    events     two snapshots, one after the other, to what has happened; pure
    tallies    what each gate has refused, or would have; pure
    remember   one attempt to entries: who keeps the pod off which node; pure
    pods       the refusals of pods, bounded by pods and by names; pure
    numbers    names of nodes as numbers; pure

Guaranteed: what a call appends takes the same short time whatever was asked; what is remembered is bounded whoever
asks, and for however long; nothing here can make a filter call or a decision wait.

Imports `policy` and `counts`; imported by `source` and all above it.
"""
