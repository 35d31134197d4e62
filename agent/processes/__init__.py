"""Child processes that end when they should, and a rate limit.

    command      runs one command: own session, a deadline that holds, output capped, the whole group killed
    single       one command again and again, never twice at the same time
    spawn        starts a program without a copy of this process
    proc         processes by /proc, and how to end exactly those of one container
    rate_limit   a burst, then one in so many seconds; pure

Guaranteed: no lock is held while a command starts or runs; a process that outlives SIGKILL is reported and not started
a second time; only processes that the agent started are ended, by pid and start time.

Imported by every room above it. Knows no pod and no check.
"""
