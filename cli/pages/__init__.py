"""What the commands show: data in, lines out, for a width. Pure, all of it.

    status   the cluster in a screenful: gates, and the nodes that are not simply open
    pod      why a pod is Pending, as far as it is ours
    node     what holds for one node, why, and what it does to pods
    history  what has happened, the newest first
    impact   what gates in shadow would have done

Text of the cluster gets in by `layout.span` and `layout.line` only, which make it printable.

Guaranteed: the first sentence is the answer; what decides is said in words, never by colour alone; each page can be
read at 60 columns. Imported by the commands of `cli`.
"""
