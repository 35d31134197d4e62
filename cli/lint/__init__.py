"""`readygate lint FILE`: would the extender take this configuration file, and can each gate open and close?

    command     the command: findings as lines, exit code
    gates       what no gate can mean: pods that are always exempt, selectors that match nothing, two equal gates; pure
    conditions  a solver over the conditions of one gate: always good, never good, without effect; pure
    findings    one thing that is wrong, and how bad it is; pure

Guaranteed: nothing is started, and nothing is read but the file; a gate that is reported as always open or always
closed is so for every status that could be observed; what the file alone cannot tell is a note. Imported by
`cli.__main__` and `cli.doctor`.
"""
