"""`readygate record` and `readygate replay`: what another configuration would have decided.

    command      the two commands
    capture      writes a recording from the API server
    recording    the file format: a head, then one JSON object per line; pure
    player       replays a recording with a configuration, by the recording's clock
    differences  compares the decisions of two configurations; pure
    page         totals and differences; pure

Guarantees: a recording holds only the fields that an extender reads: names, labels and conditions. It has no secrets
and no specs. Imported by `cli.__main__`.
"""
