"""What follows from a decision, each in a thread of its own and never in the request path.

    schedule   when, and by a write to which node (pure)
    kick       one Node write after a release, so that kube-scheduler looks again

Guaranteed: an outlet that is stuck or refused holds up neither a verdict nor an answer; what failed is tried again with
back-off and counted.

Imported by `services`.
"""
