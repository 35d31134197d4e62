"""HTTP for kube-scheduler: one thread and one epoll, in which no client can delay another one for long.

    loop              the serving thread; the only module here that waits for sockets
    accept            the listeners
    client            a connection and its socket
    connection        the state of one HTTP connection: bytes in, requests out, answers in, bytes out (pure)
    connection_table  all connections, the bytes that they hold, and their events in epoll
    eviction          which connection is closed if there are too many connections or bytes (pure)
    fairness          whose bytes are read next, and whose request is answered next (pure)
    http              bytes to requests, answers to bytes; the only module that uses the parser (pure)
    routes            a request to its answer
    allowed_hosts     which Host headers are accepted (pure)
    stream            the interface of TLS to a connection (types)
    tls               TLS, and its files, which are loaded again when they change
    error_log         limits how often an error of a connection is logged (pure)
    limits            the limits, each with its reason (pure)

Guaranteed: a client gets no more than its share of bytes, seconds and connections, whatever it does or omits. A request
that is cheap to answer does not wait for expensive ones. A request with a foreign Host header gets no answer. With a
client CA no verb is answered to a client without a certificate of that CA.

Imports `verbs` and `config`. Imported by `process`; allowed_hosts, error_log and limits also by `web`.
"""
