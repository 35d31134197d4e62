"""`readygate status`: shows which nodes are open, which are closed, why, and what opens them.

    command   gathers the answers of all extenders and chooses the newest data
    page      draws gates, nodes that are not simply open, and what kube-scheduler calls; pure

Guarantees: the first line is the answer, and no meaning is shown by colour alone. If the extenders disagree, the page
shows on which nodes.
Imported by `cli.__main__`.
"""
