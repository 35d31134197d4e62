"""`readygate impact`: shows what gates in shadow would have done.

    command   queries the extenders, and shows the answer of the one that kube-scheduler calls
    page      draws one line per gate; pure

Guarantees: without verdicts it never reports that arming a gate is safe.

Imported by `cli.__main__`.
"""
