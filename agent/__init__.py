"""The agent: runs checks and publishes the health of its node, or is the kubelet of a node that has none.

agent/README.md has a line for each room; the docstring of a room's `__init__` lists its modules and guarantees.

    __main__   the command: settings -> mode -> run until SIGTERM
    settings   the configuration file

Each room imports only those below it (import-linter, "the agent's rooms"). May use `kube` and `component`; imports
nothing of `extender` and `cli`.
"""
