"""Mode `kubelet`: the pods bound to this node, brought to what they should be.

    source            the pods as the API server and the manifests have them; the table that all read
    index             the pods by uid, mirrors by their static pods
    manifest_folder   the static pods that the files of a folder hold; pure
    manifest_watch    reads that folder when it changes, and every 20 seconds
    mirrors           the mirrors of static pods in the API server
    work_queue        UIDs of pods to sync, deduplicated, and the channel of pod events
    admission_order   admits or refuses new pods, the oldest first
    admission         may one more pod run here, and why not; pure
    requests          what a pod asks for of the node's resources; pure
    node_fit          labels, taints and host ports that a pod fits or not; pure
    sync              the loop: one thread for all pods, or their workers (syncPod, syncTerminatingPod)
    workers           a worker for each pod, where calls to the runtime wait; and when which pod is due
    state             what the loop knows of one pod
    interfaces        what the loop uses of other rooms, as protocols
    housekeeping      what no event reports, every two seconds
    actions           which containers to start, which to end, in what order; pure (computePodActions)
    starts            starts containers, each when its back-off is over
    backoff           how long a container that keeps ending waits; pure
    ending            ends containers: their preStop hooks first, the sidecars last
    hooks             lifecycle hooks, a thread each
    probe_updates     what a changed probe result leads to

Guaranteed: no step waits for a container or a probe, and where one waits for the runtime, only its own pod does; a pod
that fails to sync is tried again and keeps no other from being synced.

Imported by `agent.modes` only. Prober and status manager are handed in, as protocols.
"""
