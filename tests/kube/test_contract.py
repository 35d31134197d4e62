"""The words that agent, extender and playbooks share are spelled in one place."""

import ast
from pathlib import Path

import pytest

from kube import contract

ROOT = Path(contract.__file__).parents[1]
PACKAGES = ("component", "kube", "agent", "extender", "cli")
KINDS = ("CONDITION_", "REASON_", "CLOSED_", "ANNOTATION_", "LABEL_", "NAMESPACE")
# Words of Kubernetes that mean other things as well.
COMMON = {contract.CONDITION_READY}
WORDS = {value for name, value in vars(contract).items() if name.startswith(KINDS)} - COMMON


def spelled(path: Path) -> set[str]:
    """Text constants of a module; docstrings are sentences, so none of them is a word."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_other_module_spells_the_words_of_the_contract(package):
    found = {
        str(path.relative_to(ROOT)): sorted(words)
        for path in (ROOT / package).rglob("*.py")
        if path != Path(contract.__file__) and (words := spelled(path) & WORDS)
    }
    assert found == {}


def test_the_words_are_looked_for():
    assert {contract.CONDITION_NODE_HEALTHY, contract.ANNOTATION_KICK, contract.CLOSED_NODE_LOST} <= WORDS
    assert contract.CONDITION_NODE_HEALTHY in spelled(Path(contract.__file__))
