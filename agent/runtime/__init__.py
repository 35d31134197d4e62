"""Containers: what the agent asks of a runtime, and one runtime where a container is a local process.

    base           the protocol, and what a runtime knows of a pod
    process        the process runtime; instances, records, output, addresses are its parts
    environment    what a container is started with; pure
    backoff        how long a container that keeps ending waits; pure

Guaranteed: no call waits for a container to end; ends are told by a callback; what a killed agent left running is found
again and ended before anything is started.

`base` may be imported by `status` and `pods`, the rest by `modes` and `pods`.
"""
