"""The verbs that kube-scheduler calls over HTTP: `filter`, `preempt` and `prioritize`. `bind` is refused.

    table       which function answers which verb; `bind`; the answer to a request that was not read
    filter      the verb `filter`: read -> admit -> look up -> write
    names       the names of a filter call, encoded or decoded: reads them, looks them up, writes the answer
    preempt     the verb `preempt`: candidates on closed nodes are removed
    prioritize  the verb `prioritize`: a lower score for nodes that a gate of severity `preferNot` has closed
    reply       the reply of a verb; exemption and limit of names; `account`, the step after the answer
    source      types: what an answer is made of
    pods        the decoded part of a request's pod, and the gates that apply to it
    wire        ExtenderArgs and ExtenderFilterResult to and from bytes
    counts      counts of requests and answers; pure

Guaranteed: every name of a filter call is in exactly one of survivors and refusals. No answer has a node that the
request does not name, or a null where kube-scheduler accepts none. A text for users is sent as 200 with `Error`. All of
an answer is from one snapshot. A verb makes no API call, waits for no lock and logs nothing but a bug of readygate.

Imports `policy` and `why`. Imported by `serve`, `web`, `feed` and `process`.
"""
