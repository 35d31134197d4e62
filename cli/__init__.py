"""The operator's command `readygate`: one file per sub-command.

    __main__   arguments -> one sub-command -> exit code
    lint       is this configuration file of the extender right?
    status     which nodes are open, which are closed, and why: asks a running extender

Imports `kube` and the pure rooms of `extender`; nothing that serves or watches, and nothing imports it.
"""
