"""The modes, one file each: they put rooms together, and no rule lives there.

    pod       checks in the health pod: /readyz, and its condition if wanted
    node      checks on the host, and a second opinion on the health pods beside the kubelet's
    kubelet   the kubelet of a node that has none
    sources   of mode kubelet: where its pods come from
    facts     no mode: what that node is, from the settings and the machine
    once      no mode: each check of the settings once, for people
    reload    no mode: the settings, read again while a mode runs

`build(settings)` gives the services in the order of their start, and is all that anybody outside may use of a mode. It
makes no thread and no socket. What one mode needs is imported in its own file, so that the others do not pay for it.

Only `agent.__main__` imports this room, late.
"""
