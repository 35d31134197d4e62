"""The recorder on the control plane host (recorder.py): its start, and what it has noted."""

import json
from pathlib import Path
from typing import Any

from kube import contract
from tests.hosts.deployment import recorder
from tools.testbed.hosts.hosts import Hosts

PORT = 9399  # beside those of the extender and of the people
URL = f"http://127.0.0.1:{PORT}"
_NOTES = "/root/filter.jsonl"
_UNIT = "systemd-run --unit=readygate-recorder --collect --quiet"


def start(hosts: Hosts) -> None:
    """It runs until the hosts end, asked or not. Called again it is started anew."""
    hosts.ssh("control-1", "cat > /root/recorder.py", stdin=Path(recorder.__file__).read_text())
    stop = "systemctl stop readygate-recorder 2>/dev/null || true"
    hosts.ssh("control-1", f"{stop}; {_UNIT} python3 /root/recorder.py {PORT} {contract.PORT_DAEMON_SET} {_NOTES}")


def forget(hosts: Hosts) -> None:
    hosts.ssh("control-1", f"rm -f {_NOTES}")


def notes(hosts: Hosts) -> list[dict[str, Any]]:
    """Since the last `forget`, in the order of the calls."""
    return [json.loads(line) for line in hosts.ssh("control-1", f"cat {_NOTES}").stdout.splitlines()]
