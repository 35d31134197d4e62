"""The client of the Kubernetes API that agent, extender and cli share, and nothing more.

    contract       names that two of agent, extender and playbooks share; no imports, no code
    errors         one type per cause: NotFound, Conflict, Gone, Forbidden, Unreachable, ...
    paths          API paths
    media_types    content types of the API
    objects        partial views of metadata
    times          RFC 3339 text to seconds and back
    selector       label selectors, read and matched as Kubernetes does (pure)
    auth           identity: token, certificate and CA files
    certificates   when a certificate begins and ends (pure)
    kubeconfig     identity from a kubeconfig file; the only importer of `kubernetes`
    connect        a client from the settings
    addresses      the addresses of one host, with a deadline
    dial           a TCP connection to a server that may return during the wait
    transport      connections with hard deadlines, keepalive, and unblocking from another thread
    client         bytes in, bytes out: a deadline on every call, Retry-After, 401
    lines          bytes to lines (pure)
    stream         an open watch
    watching       what follows from an event, an error, the end of a stream (pure)
    retry_policy   when the server is asked again (pure)
    staleness      how old events are when they arrive (pure)
    server_health  a budget of requests while a server fails, and the notice of its return, for all watches of it
    listing        one kind of object at one path: pages, watches, decoding
    reflector      the thread around it: list, watch, pass to a store; synced, age, counters

It has no decision about a pod or a node, no settings, no metric registry, and no word that only one program uses. A
line that does not know the Kubernetes API does not belong here.

Guaranteed: every call has a deadline and one error type per cause. A store is never filled from an older list. stop()
unblocks every waiting thread. Imported by agent, extender and cli; of readygate it imports `component` only.
"""
