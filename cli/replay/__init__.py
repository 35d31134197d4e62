"""`readygate record` and `readygate replay`: what another configuration would have made of what was seen.

    tape         the file: a head, then what was seen, one JSON object a line (pure)
    record       fills it from the API server
    player       decides on a tape by a configuration, with the tape's clock
    differences  what two configurations made of one tape (pure)
    command      arguments, page, exit codes

A tape holds of each object only what an extender reads: names, labels and conditions, no secrets, no specs. Imported by
`cli.__main__`.
"""
