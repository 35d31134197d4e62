"""Containers: what the agent asks of a runtime, and one runtime where a container is a local process.

    base           the protocol, and what a runtime knows of a pod
    process        the process runtime; instances, records, leftovers, output, addresses are its parts
    environment    what a container is started with; pure

Guaranteed: no call waits for a container to end; a callback reports what happens; what a killed agent left running is
found again and ended before anything is started.

`base` may be imported by `status`, `pods` and `pleg`, the rest by `modes`.
"""
