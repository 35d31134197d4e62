"""The extender's configuration file.

    settings   the whole file; `load` reads and checks it
    gates      its sections on gates and on the limits of closing
    outlets    its sections on what the extender writes to the API server
    keys       types of keys that several sections share; pure

Guaranteed: a file that loads is complete and consistent; an error names the key, the fault and what is allowed.

Imports no other room. Every room of the extender may import it, and so may `cli`.
"""
