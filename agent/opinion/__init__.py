"""Mode node: what we say of the health pods of this node beside what the kubelet says, and what follows.

    selection    pure: whose pods are health pods
    readiness    pure: ContainersReady and Ready as we see them, from container states and our own probes
    agreement    pure: two words on one pod over time; which of them is believed, and since when they disagree
    silence      pure: does the kubelet still report
    verdict      pure: checks and findings -> the condition, and the text of /readyz
    pods         the health pods as the API server has them; the last known while it is away
    local        the health pods as the kubelet has them, asked while the API server is away
    containers   what the container runtime says of the health pods, by `pleg`; the last known states while it is silent
    kubelet      looks after the kubelet: its health port, its Lease, what it says of its own node
    judge        the loop that brings all of these together, and hands what it found to who publishes it

Guaranteed: agreement is the normal case and writes nothing; a probe that cannot be made, a container state that is not
known and an API server that is away close nothing; each finding has a constant reason and its own way back. No thread
here waits for a network but those of `kubelet`, `containers` and `local`.

Imported by `agent.modes` only.
"""
