"""The words of the product, those that its parts share and those of one part, are spelled in one place each."""

import ast
import re
from pathlib import Path

import pytest

from agent.kubelet.status import conditions
from agent.wire import condition
from extender.config import settings as extender_settings
from extender.outlets import kick
from extender.policy import reasons
from kube import contract

ROOT = Path(contract.__file__).parents[1]
PACKAGES = ("component", "kube", "agent", "extender", "cli")
KINDS = ("CONDITION_", "REASON_", "CLOSED_", "ANNOTATION_", "LABEL_", "NAMESPACE")
# Words of Kubernetes that mean other things as well.
COMMON = {contract.CONDITION_READY}
# The three statuses belong together, though nobody but the extender reads the third.
WORDS = sorted(
    name
    for name, value in vars(contract).items()
    if name.isupper() and isinstance(value, str) and not name.startswith("STATUS_")
)
HOMES = {
    word: Path(module.__file__)
    for module in (
        conditions,
        condition,
        reasons,
        kick,
        extender_settings,
        contract,
    )  # later ones win: the others import from it
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


def says(part: str, name: str, word: str) -> bool:
    """Whether agent or extender name the constant, or the playbooks the word itself."""
    texts = [path.read_text() for path in (ROOT / part).rglob("*") if path.suffix in (".py", ".yml", ".j2")]
    sought = word if part == "playbooks" else name
    return any(re.search(rf"\b{re.escape(sought)}\b", text) for text in texts)


@pytest.mark.parametrize("name", WORDS)
def test_what_is_in_the_contract_concerns_two_parts(name: str) -> None:
    parts = [part for part in ("agent", "extender", "playbooks") if says(part, name, getattr(contract, name))]
    assert len(parts) >= 2
