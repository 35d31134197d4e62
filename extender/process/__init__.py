"""The process: gunicorn around our application.

    server            settings -> listener -> gunicorn in the foreground; SIGHUP loads the settings anew
    rehearsal         the same without a port or a write: does it come to verdicts?
    gunicorn.conf.py  what is the same everywhere
    arbiter           gunicorn's master; its worker is replaced by the next only when that one has synced
    generations       which worker answers, comes, goes; pure
    link              what master and worker say to each other; closes when one of them has gone
    worker            gunicorn's worker as we have it: the loop of `serve`, signals, the sign of life

Guaranteed: services start in the worker after the fork; a bad configuration leaves the old one in force; a reload loses
no call; a worker does not outlive its master; a stop takes a second at most, whatever the clients do.

Imported by `extender.__main__` only.
"""
