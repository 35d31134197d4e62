"""The extender's configuration file.

    settings   the whole file; `load` reads and checks it; pure but for reading the file
    gates      its sections on gates and on the limits of closing, and types that several sections share; pure
    outlets    its sections on what the extender writes to the API server; pure

Guaranteed: a file that loads is complete and consistent. An error is one line with the key, the fault and what is
allowed.

Imports no other room. Every room of the extender may import it, and so may `cli`.
"""
