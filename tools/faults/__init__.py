"""Faults of nodes, injected by hand on a host of ring 3: `python -m tools.faults NAME HOST [--heal]`.

    fault      what a fault is
    registry   all of them, by name
    ...        one file a fault, or a family of them: FAULTS

Guaranteed: a fault says each command before it runs it; `--heal` takes it back, also where it was never injected, and
whoever injects it may be interrupted at any moment. What a heal leaves is what the check has to find good (a small
disk, a server in the place of a cache, a copy of tables); `--clear` takes that away too, and then nothing is left.

The hosts of ring 3 are containers of one machine. What its kernel counts as a whole (full tables, open files) is
played on a copy of /proc; its log and its clock are there for all of them, so a fault of these is each host's whose
service looks at it. The time itself is left alone.
"""
