"""`readygate doctor`: finds what keeps readygate from working, with evidence and remedy.

    command         gathers the facts, examines them, shows the findings
    cluster         reads the facts through the API server and from the extenders
    configz_reader  reads the loaded configuration of a kube-scheduler, by port-forward or at a URL
    configz         parses that configuration; pure
    facts           the facts that findings are based on; pure
    examine         all findings, with those about extenders, gates, health pods, rights, versions; pure
    schedulers      the findings about kube-schedulers; pure
    agents          what the agents' pods cannot examine; pure
    rights          the rights that the extender needs; pure
    findings        what a finding is; pure
    page            the page; pure

Guarantees: changes nothing. What cannot be read is reported as unknown. Imported by `cli.__main__`, and by `cli.replay`
for the deployed configuration.
"""
