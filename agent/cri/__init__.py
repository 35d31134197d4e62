"""The container runtime interface: what containerd and CRI-O say of pods and containers, over gRPC on their socket, and
what they are asked to do with those that are ours.

    base           what is asked, what is said, how it fails; light; pure
    connect        a reader of the socket that is given, or a runtime that writes to it; loads gRPC
    client         one connection, whose calls have a deadline each and fail in one line
    pieces         a list taken apart before it is read; pure
    look           what is wrong with a socket, by looking at it
    convert        messages to what the agent's rooms say to each other, by the kubelet's rules; pure
    reader         the calls
    events         the thread that reads what the runtime tells by itself, for `pleg`
    configs        pods to what a runtime is asked to make; pure
    writer         the calls that change something
    images         is an image there, may it be pulled
    stops          containers that are being stopped, a thread each
    guard          does a kubelet answer on this node?
    runtime        pods and containers of mode `kubelet`, by all of these
    api_pb2        the messages, made of api.proto by `make stubs`

Guaranteed: a runtime that is gone, hangs, vanishes or answers nonsense costs its caller no more than the deadline, and
one error that says so; the next call finds a runtime that has come back. What is not marked as ours is neither seen nor
touched, and where a kubelet answers nothing is written. `api.proto` is that of k8s.io/cri-api v0.36.3.

Imported by `checks`, `modes` and `pods`: `base` at the top, `connect` where it is used, since gRPC is large.
"""
