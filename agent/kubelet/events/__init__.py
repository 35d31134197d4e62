"""Events of mode `kubelet`: what happened to a pod or to the node.

    event       an Event before it is written, and its object; pure
    correlate   which Events are written, as new ones or as a count of earlier ones; pure
    recorder    the thread that writes them

Guaranteed: recording an Event never waits; an API server that is away costs Events and nothing else.

Imported by `pods`, `node` and `modes`; knows neither statuses nor probes.
"""
