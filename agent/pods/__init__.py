"""Mode `kubelet`: the pods bound to this node, brought to what they should be.

    index     the pods by uid, mirrors by their static pods
    inbox     work queue of pod UIDs, deduplicated
    source    the pods as the API server has them: a reflector and the table it fills
    actions   which containers to start, which to end, in what order; pure (computePodActions)
    ending    ends containers: their preStop hooks first, the sidecars last
    hooks     lifecycle hooks, a thread each
    starts    starts containers, each in its turn of back-off
    backoff   how long a container that keeps ending waits; pure
    updates   what a changed probe result brings about
    partners  what the loop is given, as protocols
    sync      the loop: one thread for all pods (syncPod, syncTerminatingPod, syncTerminatedPod)

Guaranteed: no step waits for a container, a probe or the network; a pod that fails to sync is tried again and keeps no
other from being synced.

Imported by `agent.modes` only. Prober and status manager are handed in, as protocols.
"""
