"""State changes of the runtime's containers, as events: the kubelet's pod lifecycle event generator (PLEG).

    events           which events follow from a container whose state changes; pure
    channel          events that wait for their consumer, at most a thousand
    cache            the last answer of the runtime for each pod, and when
    evented          what follows from the runtime's own events; pure
    relist           lists pods, compares with the last list, inspects what has changed; healthy or not; pure
    counts           metrics of the lists
    generator        the thread around them
    cached_runtime   the runtime as last seen, for the sync loop

Guaranteed: a runtime that breaks, hangs or answers nonsense loses no event, unless a container was made and removed
between two lists. A consumer that takes no events loses the newest, and delays neither lists nor cache. The cache is
never older than the time that it gives for a pod.

Imported by `pods`, `opinion` and `modes`.
"""
