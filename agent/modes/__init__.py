"""The modes, one file each: they put rooms together and have no rule of their own.

    pod               checks in the health pod: /readyz, and its condition if wanted
    node              checks on the host, and a second opinion on the health pods next to the kubelet's
    kubelet           the kubelet of a node that has none
    pod_sources       mode kubelet: where its pods come from
    node_facts        mode kubelet: what its node is, from the settings and the machine
    once              `--once`: runs each check of the settings once and prints the findings
    reload            reads the settings again while a mode runs
    signals           waits for SIGTERM, SIGINT and SIGHUP
    systemd_notify    reports to systemd: ready, alive, the health of the node
    start_delay       when an agent first asks the API server after its host has booted; pure
    pod_network       what the check podNetwork gets from its agent; its page and metrics
    peer_source       the API server as the source of the peers of that check
    sandbox_sockets   mode node: sockets in the health pod's network

`build(settings)` returns the services in the order of their start, and is all that others may use of a mode. It makes
no thread and no socket. What one mode needs is imported in its own file, so that the others do not pay for it.

Imported by `agent.__main__` only, late.
"""
