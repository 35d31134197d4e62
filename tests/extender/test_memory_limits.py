"""The memory that the extender's two containers are given, by the chart and by the playbooks, is enough for the worst.

All figures are MiB, at 5,000 nodes; docs/performance.md and the comments beside the limits have them too.
"""

import re
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).parents[2]
ROLE = ROOT / "playbooks/roles/readygate_extender/defaults/main.yml"
CHART = ROOT / "charts/readygate/values.yaml"

VERBS_IDLE, STATUS_API_IDLE = 120, 50
RELOADING = 60  # what a second worker takes besides what both share
CLIENTS = 160  # above idle, with anything that clients can send: bodies at work, and what is remembered of pods
REMEMBERED = 30  # 25,000 pods, a million names of nodes in them, and 10,000 changes
STATUS_CLIENTS = 28  # bodies and pages; tests/scripted/test_status_api_memory.py measures all three
KERNEL = 16  # the buffers of all connections


def mib(limits: dict[str, str]) -> int:
    found = re.fullmatch(r"(\d+)Mi", limits["memory"])
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("path", [ROLE, CHART], ids=["by the playbooks", "by the chart"])
def test_the_limits_are_enough_for_the_worst(path):
    told = msgspec.yaml.decode(path.read_bytes())
    if path == ROLE:
        verbs, status_api = told["readygate_extender_resources"], told["readygate_extender_status_api_resources"]
    else:
        verbs, status_api = told["extender"]["resources"], told["extender"]["statusApi"]["resources"]
    assert VERBS_IDLE + RELOADING + CLIENTS <= mib(verbs["limits"])
    assert STATUS_API_IDLE + REMEMBERED + STATUS_CLIENTS + KERNEL <= mib(status_api["limits"]) == 128
