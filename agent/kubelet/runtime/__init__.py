"""Containers of this node, for mode `kubelet`: local processes, or those of a container runtime over the CRI.

    base           the protocol of a runtime, and how a start fails
    environment    what a container is started with; pure
    process        the runtime of local processes
    instances      one container instance of it
    records        what it keeps on disk
    leftovers      what an agent that was killed left behind
    output         the output of one container
    addresses      addresses of pods
    connect        opens a container runtime to run pods there; loads gRPC
    cri_runtime    pods and containers of a container runtime
    cri_configs    pods to what a container runtime must make; pure
    cri_writer     the calls that change something
    images         is an image there, may it be pulled
    image_names    names of images; pure
    stopper        containers that are being stopped, a thread each
    readiness      is the container runtime ready, its network too; pure
    kubelet_lock   does a kubelet answer on this node

Guaranteed: no call of the process runtime waits for a container to end; what a killed agent left running is found and
ended before anything is started. Over the CRI, only what has the agent's label is seen or touched, and nothing is
written where a kubelet answers.

Imported by `pods` (`base`) and `modes`.
"""
