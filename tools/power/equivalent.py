"""Changes of code that are no faults, each with its reason: the program does the same. The catalogue leaves them out.

A change that only costs time or memory is no fault, unless a document promises the figure.
"""

EQUIVALENT = {
    (
        "extender/policy/limits.py:_room_for_all:negated condition:2e230373:1"
    ): "returns False more often, and then the slower path finds the same nodes",
    (
        "extender/serve/loop.py:Loop.run:dropped statement:6fd1f5dd:1"
    ): "the process ends at this point, and the kernel closes the descriptor",
    (
        "extender/serve/client.py:Client.ready_bytes:off by one:875f4457:1"
    ): "the fifth byte is zero, and on amd64 and arm64 it is the highest one",
    (
        "kube/kubeconfig.py:KubeconfigCredentials._look:off by one:fa514b6c:2"
    ): "the numbers of a file that is not there only have to differ from those of one that is",
    (
        "agent/kubelet/pods/starts.py:Starter.abandon_hook:dropped statement:53604772:1"
    ): "a pod that ends runs no more hooks",
}
