"""`readygate lint FILE`: checks that the extender accepts a configuration, and that each gate can open and close.

    command     shows the findings
    gates       gates that are always open or closed, and selectors that match nothing; pure
    conditions  a solver over the conditions of one gate; pure
    findings    what a finding is; pure

Guarantees: reads only the file. A gate that is reported as always open or closed is so for every status that can occur.
What the file alone leaves open is a note. Imported by `cli.__main__` and `cli.doctor`.
"""
