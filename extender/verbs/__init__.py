"""What kube-scheduler asks over HTTP: the verbs `filter`, `preempt` and `prioritize`; to `bind` we say no.

    table       which function answers which verb; `bind`; what is answered to a request that was not read
    dispatch    the verb `filter`: decode, look up, encode
    preempt     candidates of a preemption: those on closed nodes are taken out
    prioritize  a lower score for nodes that a gate of severity `preferNot` has closed
    reply       what a verb gives back
    pods        what of a request's pod is looked at, and which gates speak for it
    wire        ExtenderArgs and ExtenderFilterResult to and from bytes

Guaranteed: every name of a filter call is in exactly one of survivors and refusals; no answer holds a node that was not
asked for, or a null where kube-scheduler takes none; what a user is to read comes as 200 with `Error`; no API call, no
lock that waits, no log line but for a bug of ours; all of an answer is from one snapshot.

Imported by `serve`, `process` and `services`.
"""
