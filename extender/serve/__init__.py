"""The verbs' own server: what comes in on a connection, and who may ask.

    hosts   whether a Host header names us; pure
    tls     TLS between bytes and bytes, and the files it is made of, looked at again while we run

Guaranteed: nobody is answered under a name that is not ours, and with a client CA no verb is answered to a client that
it has not signed. What a client sends decides nothing here but its own answer.

Imported by `process`.
"""
