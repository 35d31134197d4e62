"""What is reproduced of the kubelet, one folder for each of its packages.

    pods      which pods run here, and the loop that starts and ends their containers (pod config, pod workers)
    prober    the probes of containers
    status    the status of a pod, from the state of its containers to the patch
    node      the Node object, its status and its Lease
    plugins   drivers that register by a socket (pluginmanager)
    events    Events on pods and the node
    pleg      state changes of containers, as events (pod lifecycle event generator)
    runtime   containers of this node: local processes, or those of a container runtime over the CRI

Guaranteed: behaves as the kubelet does, row by row in docs/kubelet-parity.md; `wire.semantics` chooses the version.
Mode `kubelet` uses all of it; mode `node` uses prober, pleg and status for its second opinion.

Each folder imports only those below it. Imported by `checks` (plugins), `opinion`, `settings` and `modes`.
"""
