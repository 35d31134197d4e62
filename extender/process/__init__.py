"""The process: gunicorn around our application.

    server            settings -> listener -> gunicorn in the foreground; SIGHUP loads the settings anew
    gunicorn.conf.py  what is the same everywhere
    worker            gunicorn's gthread worker for one busy client, with an end for whatever a client leaves undone
    app               create_app(services): routes and error handlers

Guaranteed: services start in the worker after the fork and before it accepts; a bad configuration leaves the old one in
force; no client holds a thread for more than seconds.

Imported by `extender.__main__` only.
"""
