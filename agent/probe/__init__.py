"""One probe, for a container or for a check.

    targets       where a probe goes and what it sends: ports, URLs, headers; pure
    url           URLs as Go's net/url reads them; pure
    hosts         host names with other letters, as Go's idna reads them; pure
    reply         responses as Go's net/http reads them; pure
    go_quoting    texts as Go quotes them; pure
    dial          TCP with one deadline for name, connect, TLS, reads and writes
    tls           TLS without verification
    multiplex     many conversations over sockets in one thread, with one deadline
    names         names to addresses, each name once at a time
    dns_message   DNS messages; pure
    exec          the handler exec, as pkg/probe/exec of the kubelet
    http          the handler httpGet, as pkg/probe/http
    tcp           the handler tcpSocket, as pkg/probe/tcp
    grpc          the handler grpc, as pkg/probe/grpc; loads gRPC at the first such probe
    result        what a handler returns for one attempt
    streak        equal results in a row, up to a threshold; pure
    ticker        Go's time.Ticker

Guaranteed: a probe returns at its deadline whatever the peer does, and leaves no thread, socket or process behind, but
one thread for each name that no name server answers.

Imported by `kubelet`, `checks`, `store`, `opinion` and `modes`; knows neither pods' statuses nor verdicts.
"""
