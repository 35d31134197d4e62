"""What outlives a restart of the agent: the states of the checks, so that a healthy node does not close with it, and
what probes have found.

    wire  states of checks to bytes and back; pure
    file  the file they are in: read once at the start, replaced as a whole
    results  the same for what probes have found, where containers outlive the agent
    whole  what it writes: a file that is replaced as a whole
    sealed  and what is in it: a version, a checksum; pure

Guaranteed: a file that is corrupt or foreign is ignored, with one line, one of checks also where it is of another boot
or too old, and of one of probes that is too old the failures that end a container; a disk that cannot be written costs
the memory and nothing else; a check whose settings have changed starts anew.

Imported by `modes` only.
"""
