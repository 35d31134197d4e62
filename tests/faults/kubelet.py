"""The kubelet stands still: no check of a kind looks at it, the opinion of mode `node` does."""

from tests.faults.fault import Fault

FAULTS = [
    Fault(
        "kubelet-hangs",
        "kubelet",
        "the kubelet stands still (SIGSTOP): mode `node` sees its silence",
        ("systemctl kill --kill-whom=main --signal=STOP kubelet",),
        ("systemctl kill --kill-whom=main --signal=CONT kubelet",),
    ),
]
