"""`readygate doctor`: what would keep readygate from doing its work, with evidence and remedy.

    facts        what a finding is made of (pure)
    configz      the configuration that a kube-scheduler has loaded, from its own words (pure)
    findings     what a finding is (pure)
    schedulers   what is found of kube-schedulers (pure)
    gating       what is found of gates, health pods, extenders, rights (pure)
    rights       what the extender has to be allowed (pure)
    examine      all findings of all facts (pure)
    cluster      reads the facts through the API server
    tunnel       reads a kube-scheduler's loaded configuration, by port-forward or at a URL
    command      arguments, page, exit code

Changes nothing anywhere. Imported by `cli.__main__`.
"""
