"""Mode `kubelet`: the probes of containers, as pkg/kubelet/prober.

    decide    may we probe now, and what does a result change; pure, sixteen rows
    prober    one probe of a container: its handler, its retries
    worker    the loop of one pod, container and probe type
    results   the last stable result of every container
    manager   owns the workers; folds results into a pod's status

Guaranteed: at most one worker a pod, container and type; no call waits for a probe; a probe that could not be made
changes nothing.

Imported by `agent.modes` only. Single probes are `probe`; when a container may restart is `status.restarts`.
"""
