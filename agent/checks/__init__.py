"""The checks of mode `pod`: what is looked at, by whom, and what it means for the node.

    catalogue   the table of kinds; a check of the settings made runnable
    builtin/    the kinds, one file each
    networks    which network configuration a runtime takes, and what stands in it
    rights      what a check takes beyond an ordinary container; pure
    state       findings -> state of a check; pure
    health      states of all checks -> health of the node; pure
    said        what checks that do not pass said, for alerts; pure
    pages       what people are shown of the checks: JSON, a table, what one is about; pure
    elsewhere   a look at files in a child process, which a mount that hangs does not keep
    contents    what is looked at so: files, names, owners
    reading     small files in which the kernel shows its state
    events      the kernel's news make a check run at once
    engine      one thread a check; keeps the health of the node

Guaranteed: one run of a check at a time; a check that hangs, breaks or cannot even be made touches nothing but its own
state; what has passed is protected by the failure threshold; "could not be run" is neither passed nor failed; a check
that warns has passed.

Imported by `agent.settings` (the keys of a check) and `agent.modes`. Uses `probe` and `processes`; sends nothing
anywhere, `report` does.
"""
