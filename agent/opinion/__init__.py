"""Mode `node`: the second opinion on the health pods of this node, next to the kubelet's, and what follows from it.

    settings            the section `node` of the configuration file; pure
    selection           whose pods are health pods; pure
    checks_per_pod      which checks count for which health pods; pure
    readiness           ContainersReady and Ready, from container states and our own probes; pure
    agreement           our readiness and the kubelet's over time: which is believed; pure
    kubelet_liveness    does the kubelet still report; pure
    verdict             checks and findings -> the condition, and the text of /readyz; pure
    pods                the health pods as the API server has them; the last known while it is away
    kubelet_pods        the health pods as the kubelet has them, asked while the API server is away
    containers          container states from the runtime, by `kubelet.pleg`; the last known while it is silent
    kubelet             watches the kubelet: its health port, its Lease, its Node
    judge               the loop that brings all of these together
    condition_writers   one publisher of conditions for each health pod that asks for it

Guaranteed: agreement is the normal case and writes nothing; a probe that cannot be made, an unknown container state and
an API server that is away close nothing; each finding has a constant reason and is cleared on its own. No thread here
waits for a network but those of `kubelet`, `containers` and `kubelet_pods`.

Imported by `agent.settings` (the section) and `agent.modes`.
"""
