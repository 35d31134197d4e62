"""Files that survive a restart of the agent, so that a healthy node does not close with it.

    check_states          the states of the checks: read at the start, replaced as a whole
    check_states_format   those states to bytes and back; pure
    results               mode kubelet over the CRI: the results of probes
    atomic_file           a file that is replaced as a whole
    checksummed           its content: a version and a checksum; pure

Guaranteed: a corrupt or foreign file is ignored, with one line. So are states of checks from another boot or too old,
and failures of old probe results that would end a container. A disk that cannot be written costs the saved state and
nothing else; a check whose settings have changed starts again.

Imported by `modes` only.
"""
