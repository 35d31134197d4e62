"""The status of a pod, as the kubelet keeps it: pkg/kubelet/status.

    restarts      which containers may restart; pure
    conditions    conditions that the kubelet owns; pure
    phase         the phase, from container statuses; pure
    deadline      has a pod been active for too long; pure
    generate      runtime and old status in, whole status out; pure
    termination   the status of a pod whose containers are gone for good; pure
    merge         what may change in a status; pure
    patch         the strategic merge patch that is sent; pure
    manager       keeps the newest status of every pod and writes it: versions, wake-ups, batches

Guaranteed: only the newest status of a pod is written; a container that is over for good does not come back; requests
are made by one thread, and no lock waits for them.

Imported by `prober`, `pods`, `opinion` and `modes`.
"""
