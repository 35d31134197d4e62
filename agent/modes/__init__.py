"""The modes, one file each: they put rooms together, and no rule lives there.

    pod       checks in the health pod: /readyz, and its condition if wanted
    kubelet   the kubelet of a node that has none

`build(settings)` gives the services in the order of their start, and is all that anybody outside may use. It makes no
thread and no socket. What one mode needs is imported in its own file, so that the other does not pay for it.

Only `agent.__main__` imports this room, late.
"""
