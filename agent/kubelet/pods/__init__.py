"""Mode `kubelet`: the pods bound to this node, brought to what they should be.

    index     the pods by uid, mirrors by their static pods
    inbox     work queue of pod UIDs, deduplicated, and the bounded channel of pod events
    source    the pods as the API server has them: a reflector and the table it fills
    folder    the static pods that the files of a folder hold; pure
    files     reads that folder when it changes, and every 20 seconds
    mirrors   the mirrors of static pods in the API server
    admission may one more pod run here, and why not; pure
    requests  what a pod asks for of the node's resources; pure
    fitting   labels, taints and host ports that a pod fits or not; pure
    actions   which containers to start, which to end, in what order; pure (computePodActions)
    ending    ends containers: their preStop hooks first, the sidecars last
    hooks     lifecycle hooks, a thread each
    starts    starts containers, each in its turn of back-off
    backoff   how long a container that keeps ending waits; pure
    resizing  what is said of resources that are changed while a pod runs
    updates   what a changed probe result brings about
    partners  what the loop is given, as protocols
    state     what the loop knows of one pod
    workers   a worker a pod, where calls to the runtime wait; and when which pod is due
    sync      the loop: one thread for all pods, or their workers (syncPod, syncTerminatingPod, syncTerminatedPod)

Guaranteed: no step waits for a container or a probe, and where one waits for the runtime, only its own pod does; a pod
that fails to sync is tried again and keeps no other from being synced.

Imported by `agent.modes` only. Prober and status manager are handed in, as protocols.
"""
