"""The verbs' own server: what comes in on a connection, and who may ask.

    hosts   whether a Host header names us; pure

Guaranteed: nobody is answered under a name that is not ours. What a client sends decides nothing here but its own
answer.

Imported by `process`.
"""
