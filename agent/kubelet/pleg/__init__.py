"""What the runtime's containers do, told as events: the kubelet's pod lifecycle event generator (PLEG).

    events     what is told of a container whose state changes; pure
    channel    events that wait for their consumer, at most a thousand
    cache      what the runtime said last of each pod, and when
    evented    what follows from what the runtime tells by itself; pure
    relist     lists pods, compares with the last list, tells, inspects what has changed; healthy or not; pure
    generator  the thread around them
    seen       the runtime as it was seen last, for the sync loop

Guaranteed: a runtime that breaks, hangs or answers nonsense loses no event, unless a container was made and removed
between two lists. A consumer that takes no events loses the newest, and delays neither lists nor cache. What the cache
says of a pod is never older than the time it gives for it.

Imported by `modes`, `opinion` and `pods`.
"""
