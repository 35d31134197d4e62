"""Plugins of the node (drivers of volumes, of devices), which register by a socket: pkg/kubelet/pluginmanager.

    base      what a plugin says of itself, and how asking it fails; pure
    found     which sockets lie in the folder
    world     what is to be done: registered and wanted, side by side, and the pauses between tries; pure
    handlers  who takes a plugin of a type, by the kubelet's rules
    client    one connection to a socket, loads gRPC; many asked at once, for the check `kubeletPlugins`
    manager   mode kubelet: the thread that registers and deregisters, each in a thread of its own
    api_pb2   the messages, made of api.proto by `make stubs`

Guaranteed: a plugin that hangs, answers nonsense or goes away keeps no other one waiting, and is tried again, after
half a second to two minutes. `api.proto` is that of k8s.io/kubelet v0.36.3.

Imported by `checks` and `modes`: `client` where it is used, since gRPC is large.
"""
