"""Events of mode `kubelet`: what happened to a pod or the node, told to people who describe it.

    event        what is told, and of what; pure
    correlate    which of them are written, as new ones or as a count of earlier ones; pure
    recorder     the thread that writes them

Guaranteed: whoever tells of something never waits, and an API server that is away costs Events, nothing else.

Imported by `prober`, `pods`, `node` (for `event`) and `modes`; knows neither statuses nor probes.
"""
