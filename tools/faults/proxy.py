"""Faults of kube-proxy, without which no new Service address works; beside those of `network` nothing is cut."""

from tools.faults.fault import Fault
from tools.faults.network import API

FAULTS = [
    Fault(
        "proxy-hangs",
        "servicePath",
        "kube-proxy stands still (SIGSTOP); its rules are still there",
        ("systemctl kill --kill-whom=main --signal=STOP kube-proxy",),
        ("systemctl kill --kill-whom=main --signal=CONT kube-proxy",),
        f"{{service: {API}, proxy: 127.0.0.1}}",
    ),
]
