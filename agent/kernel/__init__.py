"""What the kernel of this machine reports: changed files, links and routes, lines of its log, the time.

    inotify   a file in a folder was made, replaced, moved or removed
    netlink   a link went down, a default route came or went
    kmsg      records of the kernel log
    clocks    wall and monotonic time, and chance

Guaranteed: no call waits for an event; each gives a descriptor that becomes readable. Where the kernel refuses, the
caller works by its period alone.

Imported by `checks`, `kubelet`, `opinion` and `report`; imports nothing of the agent.
"""
