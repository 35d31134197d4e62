"""What outlives a restart of the agent: the states of the checks, so that a healthy node does not close with it.

    wire  states of checks to bytes and back; pure
    file  the file they are in: read once at the start, replaced as a whole

Guaranteed: a file that is corrupt, foreign, of another boot or too old is ignored, with one line; a disk that cannot be
written costs the memory and nothing else; a check whose settings have changed starts anew.

Imported by `modes` only.
"""
