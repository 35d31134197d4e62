"""The container runtime stands still, or is gone. Its containers go on either way."""

from tools.faults.fault import Fault

FAULTS = [
    Fault(
        "runtime-hangs",
        "runtime",
        "containerd stands still (SIGSTOP)",
        ("systemctl kill --kill-whom=main --signal=STOP containerd",),
        ("systemctl kill --kill-whom=main --signal=CONT containerd",),
    ),
    Fault(
        "runtime-gone",
        "runtime",
        "containerd is stopped",
        ("systemctl stop containerd",),
        ("systemctl start containerd",),
    ),
]
