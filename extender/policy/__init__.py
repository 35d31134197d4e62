"""Pure: may new pods be placed on a node, and if not, why.

    verdict   health pods, node and heartbeat of one node -> open, or closed with one constant reason
    exempt    which pods are never refused

Guaranteed: no clock, no lock, no object of the API; time is an argument; at most six reasons, none of which ever holds
a name, a digit or a time.

Imported by `cluster`, `verbs`, `web` and `services`.
"""
