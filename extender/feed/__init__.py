"""The snapshot and what is remembered, told by the process that answers kube-scheduler to one that shows it to people,
over a unix socket.

    mirror      the people's end: follows, keeps the newest board and status, connects again
    publisher   the verbs' end: one thread for all who follow
    follower    what is still to be told to one who follows
    place       the socket's path: who may have it, who may connect
    wire        the frames; pure

Guaranteed: with nobody connected nothing is done; one who reads slowly or not at all holds nobody, its memory is
bounded, and it is cut; a reload hands the path over without a moment in which it leads nowhere; what follows sees
whole snapshots only.

Imported by `services` (publisher) and `people` (mirror).
"""
