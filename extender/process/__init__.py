"""The process: gunicorn around our application.

    server            settings -> listener -> gunicorn in the foreground; SIGHUP loads the settings anew
    gunicorn.conf.py  what is the same everywhere
    worker            gunicorn's worker as we have it: the loop of `serve`, signals, the sign of life

Guaranteed: services start in the worker after the fork and before it accepts; a bad configuration leaves the old one in
force; a stop takes a second at most, whatever the clients do.

Imported by `extender.__main__` only.
"""
