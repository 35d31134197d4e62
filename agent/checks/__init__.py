"""The checks of mode `pod`: what is looked at, by whom, and what it means for the node.

    catalogue   the table of kinds; a check of the settings made runnable
    builtin/    the kinds, one file each
    state       findings -> state of a check; pure
    health      states of all checks -> health of the node; pure
    said        what checks that do not pass said, for alerts; pure
    engine      one thread a check; keeps the health of the node

Guaranteed: one run of a check at a time; a check that hangs, breaks or cannot even be made touches nothing but its own
state; what has passed is protected by the failure threshold; "could not be run" is neither passed nor failed.

Imported by `agent.settings` (the keys of a check) and `agent.modes`. Uses `probe` and `processes`; sends nothing
anywhere, `report` does.
"""
