"""What is written to a host or sent to the API server has one order in each run: another one is a change.

Ansible's filters of sets give theirs by Python's hashes, which each process draws anew.
"""

import re
from pathlib import Path

import pytest

from tests.playbooks.rendering import PLAYBOOKS

OF_SETS = re.compile(r"\|\s*(?:map\(\s*['\"])?((?:symmetric_)?difference|union)\b")
FILES = sorted(path for kind in ("*.yml", "*.j2") for path in PLAYBOOKS.rglob(kind))


@pytest.mark.parametrize("text", ["{{ a | difference(b) }}", "{{ a |union(b)}}", "{{ a | map('difference', b) }}"])
def test_a_filter_of_sets_is_found(text: str) -> None:
    assert OF_SETS.search(text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PLAYBOOKS)))
def test_lists_keep_their_order(path: Path) -> None:
    assert [] == OF_SETS.findall(path.read_text()), "reject('in', ...) keeps it"
