"""Changed pieces of code that are no faults: what the program does stays the same. The catalogue takes others for them.

Each has its reason. A change that costs time or memory alone is one, unless a document promises the figure.
"""

EQUIVALENT = {
    (
        "extender/policy/brakes.py:_room_for_all:negated condition:2e230373:1"
    ): "answers False more often, and then the slower way finds the same nodes",
    (
        "extender/serve/loop.py:Loop.run:dropped statement:6fd1f5dd:1"
    ): "the process ends then, and the kernel closes the descriptor",
    (
        "extender/serve/client.py:Client.ready_bytes:off by one:875f4457:1"
    ): "the fifth byte is zero, and on amd64 and arm64 it is the highest one",
    (
        "agent/pods/starts.py:Starter.abandon_hook:dropped statement:53604772:1"
    ): "a pod that ends asks for no hook any more",
}
