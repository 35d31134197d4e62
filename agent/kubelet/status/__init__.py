"""Mode `kubelet`: pod status as the kubelet keeps it.

Reading order: `restarts` (who may restart), `conditions` and `phase` (states in, words out), `restarting` (all
containers in place), `deadline` (of the pod), `resize` (what is said of one), `generate` (runtime and old status in,
whole status out), `termination` and `merge` (what may be changed), `patch` (what is sent): all pure.
`manager` is the only one with a thread: versions, wake-ups, batches.

Guaranteed: only the newest status of a pod is written; a container that is over for good does not come back; requests
are made by one thread, and no lock waits for them.

Imported by `prober`, `pods` and `modes`.
"""
