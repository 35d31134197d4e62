"""The process that answers kube-scheduler: gunicorn, one worker, and everything behind the verbs.

    command           arguments, configuration file and signals of both commands of the extender
    server            settings -> listener -> gunicorn in the foreground; SIGHUP loads the settings again
    dry_start         `--rehearse`: the same without a port or a write; reports whether verdicts are reached
    foreground        a bound socket, its user, gunicorn's log lines and its end, for both commands
    gunicorn.conf.py  gunicorn's settings that never differ
    arbiter           gunicorn's master; the next worker replaces the current one only when it has synced
    generations       which worker answers, starts, leaves; pure
    control_socket    messages between master and worker; closes when one of them is gone
    worker            gunicorn's worker: the loop of `serve`, signals, heartbeat
    services          caches, index, decider, kick and feed: wiring, start() and stop()
    watchdog          logs the stack of a hung serving thread
    huge_pages        holds the tables of the verbs in huge pages

Guaranteed: services start in the worker after the fork. A bad configuration leaves the previous one in force. A reload
loses no call. A worker does not outlive its master. A stop takes a second at most, whatever the clients do.

Imports every other room but `web`. Imported by `extender.__main__`; command and foreground also by `web`.
"""
