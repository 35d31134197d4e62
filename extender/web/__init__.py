"""The status API and the dashboard, in a process that cannot slow down the one that answers kube-scheduler.

    __main__          the command `readygate-status-api`: settings -> server
    server            gunicorn around the application, and the replica's thread in its worker
    worker            gunicorn's worker: slow clients delay no others, and never the kubelet's probe
    gunicorn.conf.py  gunicorn's settings that never differ
    app               the Flask application: routes, error handlers, accepted Host headers
    health            /livez: the threads run. /readyz: verdicts can be given. /metrics
    api               /api/v1: nodes, gates, pods, history, impact; docs/openapi.yaml
    parameters        what a request may ask and send; pure
    decisions_view    nodes and gates of a snapshot; pure
    history_view      pods, history and impact of the recorded history; pure
    schema            the types of /api/v1; pure; `cli` reads them, too
    verbs             filter, preempt, prioritize and bind as at kube-scheduler's port, for curl and for tests
    metrics           what Prometheus reads
    page_budget       how much of a processor all answers may take; pure
    throttle          waits for that budget: before an answer, and within a long one
    view              the interface of what is shown

Guaranteed: it sends nothing to the API server, and /livez does not depend on it. An expensive answer is made once a
second at most, and in pieces. All answers together take 3 % of a processor in the long run.

It follows the other process over `feed`. Imports `feed`, `verbs`, `why`, `policy` and `config`, of `process` only
command and foreground, of `serve` only hosts, limits and error log. `cli` imports schema.
"""
