"""HTTP for people, probes and Prometheus.

    health   /livez: our threads run. /readyz: verdicts can be given. /metrics
    api      /api/v1/nodes: every verdict and what it was made of
    report   the shape of that answer; pure; read by `cli` too

Guaranteed: a question here is answered in the thread that asks and never makes a filter request wait; /livez does not
depend on the API server.

Imported by `process`; `report` by `cli`.
"""
