"""What kube-scheduler asks over HTTP: today the verb `filter`.

    dispatch   the verb `filter`: decode, look up, encode
    wire       ExtenderArgs and ExtenderFilterResult to and from bytes

Guaranteed: every name of a request is in exactly one of survivors and refusals; what a user is to read comes as 200
with `Error`; no API call, no lock that waits, no log line but for a bug of ours; all of an answer is from one snapshot.

Imported by `serve`, `process` and `services`.
"""
