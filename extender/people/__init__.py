"""The process of the people: what the extender has decided, shown by a process that cannot slow it.

    __main__   the command `readygate-people`: settings -> server
    server     stock gunicorn around the application, and the mirror's thread in its worker
    worker     gunicorn's, of which nobody who is slow takes a thread for long
    gunicorn.conf   what gunicorn is told in any case

It follows the process that answers kube-scheduler over a unix socket (`feed`) and asks the API server nothing. A
client that is slow or asks without pause has this process to itself, at a lower priority.

Imports `web` and `feed`; imported by nobody.
"""
