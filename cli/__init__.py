"""The operator's command `readygate`: one file per sub-command.

    __main__   arguments -> one sub-command -> exit code
    lint       is this configuration file of the extender right?
    status     which nodes are open, which are closed, and why: asks a running extender

Guaranteed: errors are one line on standard error with cause and remedy; exit codes are documented; text from the
cluster is made printable before it is shown. Imports `kube` and the pure rooms of `extender`; nothing that serves or
watches, and nothing imports it.
"""
