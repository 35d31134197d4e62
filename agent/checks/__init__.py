"""The checks of mode `pod`: what is looked at, by whom, and what it means for the node.

    catalogue   a check of the settings made runnable
    builtin/    the checks that readygate brings along, one file each
    health      findings -> state of a check -> health of the node; pure
    engine      one thread a check; keeps the health of the node

Guaranteed: one run of a check at a time; a run that does not come back touches nothing but its own check; what has
passed is protected by the failure threshold; "could not be run" is neither passed nor failed.

Imported by `agent.modes` only. Uses `probe` and `processes`; sends nothing anywhere, `report` does.
"""
