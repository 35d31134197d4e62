"""What others see of this agent.

    condition   modes pod and node: readygate.dev/NodeHealthy of a health pod
    heartbeat   mode node: the agent's own Lease, by which others see that it lives
    server      the HTTP server: /readyz, /livez, /metrics, /checks, and /peer for other agents
    metrics     families of samples in Prometheus' text format

Guaranteed: nothing here measures or decides, it shows what it is given; a client that is slow, or one of too many, is
cut off; an API server that is away queues nothing up.

Imported by `opinion` and `modes`. Keys of the API are spelled in `wire`.
"""
