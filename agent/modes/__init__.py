"""The modes: `pod` (checks in the health pod) and `kubelet` (the kubelet of a node that has none).

A mode builds the services of its rooms and hands one room's function to another; it makes no thread and no decision.
`build(settings)` gives the services in the order of their start, and is all that anybody outside may use. What one mode
needs is imported in its own file, so that the other does not pay for it.

Only `agent.__main__` imports this room, late.
"""
