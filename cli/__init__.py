"""The operator's command `readygate`, installed as `kubectl-readygate` too: one module per sub-command.

    __main__   arguments -> one sub-command -> exit code
    status     which nodes are open, which are not, why, and what would open them
    why        is it us who keep a pod off nodes, or a node from its pods, and what would end that
    orders     hold, pause, exempt, arm, disarm, lift; and what was ordered
    history    what has closed and opened, the newest first
    impact     what gates in shadow would have done
    dashboard  opens the status API of one extender at a loopback port of the user's machine
    lint       is this configuration file of the extender right, and can each of its gates open and close?
    unregistered  does no kube-scheduler ask the extenders any more, so that they may go?
    sweep      takes away what a readygate that is gone has left: on the Nodes, and in its namespace
    pages      what the commands show: data in, lines out, for a width; pure
    asking     the questions that commands ask: of all extenders, page after page, and of the API server
    reach      finds the extenders: by the API server, which forwards a port of each, or by URL
    portforward one port of one pod, through the API server and the pod's kubelet
    replicas   what several of them said, together; pure
    because    a decision in people's words; pure
    layout     spans, paragraphs and tables that fit a width; pure
    screen     the terminal: width, colours, progress, watching
    arguments  options that several commands share; pure
    errors     why a command cannot give its answer; what an error of the API server means to the user

Guaranteed: errors are one line on standard error with cause and remedy; exit codes are documented; text from the
cluster is made printable before it is shown, and `layout.span` is the only way to a page. Imports `kube` and pure
rooms of `agent` and `extender`; nothing that serves or watches, and nothing imports it.
"""
