"""What follows from a decision, each in a thread of its own and never in the request path.

    schedule   when, and by a write to which node (pure)
    kick       one Node write after a release, so that kube-scheduler looks again
    election   which replica writes what one is to write, by a Lease (pure)
    leader     the thread that holds that Lease, or waits for it
    condition  the thread that writes the Nodes' condition
    standing   what it is to say of a node (pure)
    marks      what it says, as the Nodes were seen
    turns      to which node it is written next (pure)
    events     the thread that writes Events on Nodes and Pods
    occasions  what they say (pure)
    backlog    which of them wait, and when they are written (pure)
    writers    condition and Events put together, as the settings have them
    ration     how often something may be done (pure)
    wire       JSON of what is read and written (pure)

Guaranteed: an outlet that is stuck or refused holds up neither a verdict nor an answer; what failed is tried again with
back-off and counted.

Imported by `services`.
"""
