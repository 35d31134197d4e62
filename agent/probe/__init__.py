"""One probe, whoever asks: the kubelet's prober for a container, or a check for the node.

    targets            where it goes and what it says: ports, URLs, headers; pure
    url, reply         URLs, and responses, as Go's net/url and net/http read them; pure
    dial               TCP with one deadline for name, connect, TLS, reads and writes
    together           many conversations over sockets, one deadline
    names              names to addresses, each name once at a time
    exec, http, tcp    the handlers, as pkg/probe of the kubelet
    grpc               the same; its library is loaded by the first such probe
    outcome            what a handler says of one attempt
    streak, ticker     runs of equal results up to a threshold; Go's ticker; pure

Guaranteed: a probe comes back at its deadline whatever the peer does, and leaves no thread, socket or process behind
but a name look-up: one thread a name that nobody answers for.

Imported by `prober`, `checks` and `modes`; knows neither pods' statuses nor verdicts.
"""
