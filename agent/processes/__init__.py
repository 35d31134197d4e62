"""Child processes that end when they should.

    command   runs one command: its own session, a deadline that holds, output capped, the whole group killed
    single    one command again and again, never beside itself
    spawn     starts a program without a copy of this process
    proc      who is who by /proc, and how to end exactly the processes of one container

Guaranteed: no lock is held while a command starts or runs; a process that outlives SIGKILL is reported and never
started a second time beside itself; only processes that we started are ended, by pid and start time.

Imported by `probe`, `checks`, `runtime` and `pods`. Knows no pod and no check.
"""
