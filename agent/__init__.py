"""The node plugin: runs checks and publishes what they say of the node, or is the kubelet of a node that has none.

    __main__   the command: settings -> mode -> run until SIGTERM
    modes      put the rooms together, one file a mode; no rule lives there
    signals    SIGTERM and SIGINT, waited for
    notify     systemd told that we are ready, alive, and how the node is
    settings   the configuration file; the keys of a check come from `checks`
    node_settings  its section `node`
    opinion    mode node: what we say of the health pods beside the kubelet
    identity   mode node: who we are when we write
    checks     modes pod and node: what is checked, and what the results mean for the node
    pods       mode kubelet: which pods, and the loop that makes them so
    prober     modes kubelet and node: the kubelet's probe workers, and what their results change
    status     mode kubelet: the status of a pod, from the runtime's facts to the patch
    node       mode kubelet: the Node object, its status, its Lease
    plugins    the kubelet's plugins: asked by a check, registered in mode kubelet
    report     what others see: the pod's condition, the HTTP port, the metrics
    probe      one probe, whoever asks: exec, httpGet, tcpSocket, and runs of equal results
    processes  child processes that end when they should
    runtime    containers: the protocol, and one where a container is a local process
    wire       Kubernetes JSON to `model` and back; the rooms that know the keys
    model      what the rooms say to each other        keys   types of settings that several rooms have
    histogram  how long things took

Each room imports only those below it (import-linter, "the agent's rooms"). May use `kube` and `component`;
knows nothing of `extender`.
"""
