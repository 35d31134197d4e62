"""The words of the product, those that its parts share and those of one part, are spelled in one place each."""

import ast
from pathlib import Path

import pytest

from extender import settings as extender_settings
from extender.outlets import kick
from extender.policy import reasons
from kube import contract

ROOT = Path(contract.__file__).parents[1]
PACKAGES = ("component", "kube", "agent", "extender", "cli")
KINDS = ("CONDITION_", "REASON_", "CLOSED_", "ANNOTATION_", "LABEL_", "NAMESPACE")
# Words of Kubernetes that mean other things as well.
COMMON = {contract.CONDITION_READY}
HOMES = {
    word: Path(module.__file__)
    for module in (contract, reasons, kick, extender_settings)
    for name, word in vars(module).items()
    if name.startswith(KINDS) and word not in COMMON
}


def spelled(path: Path) -> set[str]:
    """Text constants of a module; docstrings are sentences, so none of them is a word."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_other_module_spells_them(package):
    found = {
        str(path.relative_to(ROOT)): sorted(words)
        for path in (ROOT / package).rglob("*.py")
        if (words := {word for word in spelled(path) if path != HOMES.get(word, path)})
    }
    assert found == {}


def test_the_words_are_looked_for():
    for word in (contract.CONDITION_NODE_HEALTHY, kick.ANNOTATION_KICK, reasons.CLOSED_NODE_LOST):
        assert word in spelled(HOMES[word])
