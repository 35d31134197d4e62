"""The table of parts in docs/kubelet-parity.md: each part has a program, a test of ring 2 or 3 and a comparison.

That the named tests exist is for test_documents.py, as in each document.
"""

import re

import pytest

from tests.architecture.parity import DOCUMENT
from tests.architecture.test_documents import table
from tools.differential.targets import TARGETS

TITLE = "Parts of the kubelet, and what proves each"
# Of the kubelet's documents, in their words.
PARTS = (
    "statusManager",
    "SetContainerReadiness",
    "SetContainerStartup",
    "TerminatePod",
    "RemoveOrphanedStatuses",
    "static and mirror pods",
    "probe manager and worker",
    "handler exec",
    "handler httpGet",
    "handler tcpSocket",
    "handler grpc",
    "results managers",
    "conditions and readiness gates",
    "registration",
    "setters",
    "Lease",
    "PLEG",
    "plugin manager",
    "reflector",
    "work queue",
)
ROWS = table(re.split(r"^## ", DOCUMENT.read_text().partition(f"\n## {TITLE}\n")[2], maxsplit=1, flags=re.MULTILINE)[0])


def test_each_part_has_a_row() -> None:
    assert [part for part in PARTS if not any(part in row[0] for row in ROWS)] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_part_has_a_program_a_test_and_a_comparison(row: list[str]) -> None:
    _, program, tests, compared = row
    targets = set(re.findall(r"`([\w.-]+)`", compared))
    assert "mode" in program
    assert re.findall(r"`tests/(?:plane|hosts)/[\w./]+\.py::test_\w+`", tests), "no test of ring 2 or 3"
    assert targets <= {target.name for target in TARGETS}
    assert targets or compared.startswith("none: "), "a part without a comparison gives the reason"
