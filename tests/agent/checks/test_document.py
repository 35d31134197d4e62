"""docs/checks.md says what the catalogue has."""

from agent.checks.catalogue import KINDS
from tests.agent.checks.document import DOCUMENT, page
from tools.faults.registry import FAULTS


def test_the_document_is_current() -> None:
    assert page() == DOCUMENT.read_text(), "run make manifests"


def test_each_fault_is_of_a_check_that_there_is() -> None:
    assert {fault.check for fault in FAULTS.values()} - KINDS.keys() == set()
