"""`readygate history`: shows which nodes closed and opened, newest first.

    command   queries the extenders, and shows the answer of the longest memory
    page      draws the changes; pure

Guarantees: a watch writes each change once, in order, and reports missing changes.

Imported by `cli.__main__`.
"""
