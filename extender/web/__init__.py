"""HTTP for people, probes and Prometheus: a Flask application around what is to be shown.

    app      the application: routes, error handlers, whose Host headers are answered
    health   /livez: our threads run. /readyz: verdicts can be given. /metrics
    api      /api/v1: nodes, gates, pods, history, impact; docs/openapi.yaml
    asked    what a request of it asks for, strictly; pure
    decided  a snapshot as people are told of it; pure
    remembered   what is remembered as people are told of it; pure
    verbs    filter, preempt, prioritize and bind as the scheduler's own port answers them, for curl and for tests
    metrics  what Prometheus is told
    pace     how much of a processor all of it may take; pure
    rests    when it is waited for that: before an answer, and in the midst of a long one
    view     what all of these are made of
    limits   what clients may send; pure
    report   the shapes of /api/v1; pure; read by `cli` too

Guaranteed: nothing here asks the API server, and /livez does not depend on it; an answer that costs much is made once a
second at most, and in pieces; all answers together take 3 % of a processor in the long run.

Imported by `people`; `report` by `cli`.
"""
