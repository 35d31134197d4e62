"""The feed: the process that answers kube-scheduler sends its snapshot and history to the process of the status API,
over a unix socket.

    server       the sending end: one thread for all clients
    client       one connection of the server, and what it has not been sent yet
    replica      the receiving end: keeps the newest board and status, and connects again
    socket_path  the socket's path: which process owns it, which user may connect
    status       what the sending process reports of itself; pure
    wire         the frames; pure

Guaranteed: without a client nothing is done. A slow client delays nothing, its memory is bounded, and it is cut. A
reload hands the path over without a moment in which it leads nowhere. A replica sees whole snapshots only.

Imports `config`, `policy`, `verbs` and `why`. Imported by `process` (server, status) and `web` (replica, status).
"""
