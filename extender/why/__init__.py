"""The recorded history: what was refused to which pod, what happened to nodes, what gates in shadow would have refused.

    attempts   what the verbs append for each call: no lock, no copy, bounded
    recorder   the thread that takes attempts and decisions, records them, and drops old ones
    journal    the history for other threads to read, and as steps for the feed
    history    everything recorded, made of entries only; pure
    entries    the steps of the history, which the feed sends, too; pure
    events     what has happened between two snapshots; pure
    counters   what each gate has refused, or would have; pure
    blame      one attempt to entries: which gate keeps the pod from which node; pure
    pods       the refusals of pods, bounded by pods and by names; pure

Guaranteed: a call appends in constant time, whatever was asked. The history is bounded, whatever clients ask and for
however long. Nothing here makes a filter call or a decision wait.

Imports `policy`. Imported by `verbs`, `feed`, `web` and `process`.
"""
