"""The container runtime stands still, or is gone. Its containers go on either way."""

from tests.faults.fault import Fault

_SOCKET = "/var/lib/kubelet/plugins_registry/readygate-fault.sock"
_PID = "/run/readygate-fault-plugin.pid"
_HANGS = f"import socket, time; s = socket.socket(1); s.bind('{_SOCKET}'); s.listen(); time.sleep(86400)"

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
    Fault(
        "plugin-hangs",
        "kubeletPlugins",
        "a plugin's socket lets everybody in and answers nobody",
        (
            f"mkdir -p {_SOCKET.rpartition('/')[0]}",
            f'[ -e {_PID} ] || {{ setsid python3 -c "{_HANGS}" > /dev/null 2>&1 & echo $! > {_PID}; }}',
            f"until [ -S {_SOCKET} ]; do sleep 0.1; done",
        ),
        (f"kill $(cat {_PID} 2> /dev/null) 2> /dev/null; rm -f {_PID} {_SOCKET}",),
    ),
]
