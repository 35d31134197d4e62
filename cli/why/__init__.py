"""`readygate why pod` and `why node`: is it us, which nodes, why, and what would open them?

    command    the two commands: what is asked, in which order, exit codes
    blame      what scheduler, extenders and the Pod say, joined to one answer; pure
    scheduler  kube-scheduler's message, read with care; pure
    seen       what is read of a Pod; pure

Guaranteed: an answer that cannot be known is not guessed, it says so and the exit code is 3; a pod is blamed on us only
for nodes that were refused in its last attempt. Imported by `cli.__main__`.
"""
