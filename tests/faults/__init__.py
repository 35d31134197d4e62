"""Faults of nodes, injected by hand on a host of ring 3: `python -m tests.faults NAME HOST [--heal]`.

    fault      what a fault is
    registry   all of them, by name
    ...        one file a fault, or a family of them: FAULTS

Guaranteed: a fault says each command before it runs it; `--heal` takes it back, also where it was never injected, and
leaves nothing of it behind but the small disk that the faults of disks are played on.
"""
