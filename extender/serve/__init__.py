"""HTTP for kube-scheduler: one thread, one epoll, no client that can hold another one up.

    loop        sockets in, sockets out; the only one here that waits for them
    entrance    the listeners
    client      a connection and its socket
    connection  what is known of one client: bytes in, requests out, answers in, bytes out (pure)
    crowd       all connections at once: who goes when there are too many, or too many bytes (pure)
    places      who is connected: its place, its bytes, what epoll is asked about it
    ready       whose bytes are read next (pure)
    turns       whose request is answered next (pure)
    http        bytes to requests, answers to bytes; the only one that knows the parser (pure)
    routes      a request to its answer
    hosts       whether a Host header names us (pure)
    stream      what may stand between socket and HTTP (types)
    tls         TLS between bytes and bytes, and the files it is made of, looked at again while we run
    limits      the numbers (pure)

Guaranteed: what a client does or leaves undone takes no more than its share of bytes, seconds and connections; what is
cheap to answer does not wait for what is dear. Nobody is answered under a name that is not ours, and with a client CA
no verb is answered to a client that it has not signed.

Imported by `process` only.
"""
