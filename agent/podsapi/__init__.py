"""The kubelet's local Pods API: the pods of this node as their kubelet has them, over gRPC on a socket of its own.

    base      how asking fails; pure, loads no gRPC
    convert   its messages to pods as the API server writes them; pure
    client    one connection to the socket
    api_pb2   the messages, made of api.proto by `make stubs`

Guaranteed: a kubelet that is gone, hangs, answers nonsense or offers no such thing costs its caller no more than the
deadline, and one error that says so. The kubelet offers it from 1.37 (beta, feature gate PodsAPI), in 1.36 where the
gate is on: pkg/kubelet/apis/pods/server.go of v1.37.1.

Imported by `modes` (`client` where it is used, since gRPC is large) and `opinion` (`base`).
"""
