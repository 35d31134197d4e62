"""What the agent costs its node (`make bench-agent`, or `python -m tools.bench.agent --only NAME`).

    checks        mode pod: 20 exec and 10 HTTP checks; 100 HTTP checks a second, how late they start beside busy loops
    kubelet       mode kubelet: 110 pods with 330 probes, and gRPC
    differential  histories of the differential test by second of processor time
    health        whom gRPC probes ask
    peer          whom the probes ask: says when each came
    as_node       the agent before a fake API server, as with a service account
    resources     what a process holds and has spent

Figures of processor time and memory serve on a busy machine too; what is late there is late for the others' work.
"""
