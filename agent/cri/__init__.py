"""The client of the container runtime interface (CRI): reads pods and containers of containerd or CRI-O over gRPC.

    base            the protocol and its errors; loads no gRPC; pure
    connect         opens a socket for reading; loads gRPC
    rpc             loads gRPC's packages where they are first needed
    client          one connection, whose calls have a deadline each and fail in one line
    calls           calls for one pod, cancelled when the pod must end
    messages        splits a list of items before it is decoded; pure
    socket_errors   what is wrong with a socket, found by connecting to it
    convert         messages to `wire.containers`, by the kubelet's rules; pure
    reader          the calls that read
    events          the thread that reads the runtime's events, for `pleg`
    api_pb2         the messages, made of api.proto by `make stubs`

Guaranteed: a runtime that is gone, hangs, vanishes or answers nonsense costs its caller at most the deadline and one
error; the next call reaches a runtime that is back. Nothing here changes anything: the write side is in
`kubelet.runtime`. `api.proto` is that of k8s.io/cri-api v0.36.3.

Imported by the rooms above: `base` at the top, `connect` where it is used, since gRPC is large.
"""
