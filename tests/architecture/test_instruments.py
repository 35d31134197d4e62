"""Who may import whom among what builds and tests: the image's builder, the kit, the fakes, the testbed."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, circles, imports_of_ours, name_of

OURS = ("agent", "cli", "component", "extender", "images", "kube", "playbooks", "tests", "tools")
INSTRUMENTS = ("images", "tools/fakes", "tools/kit", "tools/testbed")
FILES = sorted(path for folder in INSTRUMENTS for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize(
    ("room", "may_import"),
    [
        pytest.param(
            "images", ("images", "tools.kit"), id="a packager needs no tests and no product to build the image"
        ),
        pytest.param("tools/kit", ("tools.kit",), id="the kit serves every ring and knows none"),
        pytest.param(
            "tools/testbed/shared",
            ("images", "kube.contract", "tools.kit", "tools.testbed.shared"),
            id="what both real rings share knows neither",
        ),
        pytest.param(
            "tools/testbed/plane",
            ("images", "kube.contract", "tools.kit", "tools.testbed.shared", "tools.testbed.plane"),
            id="ring 2 does not need what ring 3 needs",
        ),
        pytest.param(
            "tools/testbed/hosts",
            ("images", "tools.kit", "tools.testbed.shared", "tools.testbed.hosts"),
            id="ring 3 does not need ring 2",
        ),
    ],
)
def test_an_instrument_imports_only_what_it_stands_on(room: str, may_import: tuple[str, ...]) -> None:
    foreign = {
        f"{name_of(path)} imports {module}"
        for path in FILES
        if name_of(path).startswith(f"{room}/") and not path.name.startswith("test_")
        for module in imports_of_ours(path)
        if module.split(".")[0] in OURS and not may(module, may_import)
    }
    assert foreign == set()


def may(module: str, allowed: tuple[str, ...]) -> bool:
    """A package above an allowed one is fine: `from kube import contract` names both."""
    return any(f"{module}.".startswith(f"{name}.") or name.startswith(f"{module}.") for name in allowed)


def test_no_instruments_import_each_other_in_a_circle() -> None:
    assert circles(FILES) == []


@pytest.mark.parametrize("package", [path for path in FILES if path.name == "__init__.py"], ids=name_of)
def test_each_says_what_it_is_what_it_guarantees_and_who_may_import_it(package: Path) -> None:
    text = ast.get_docstring(ast.parse(package.read_text())) or ""
    assert (True, True) == (len(text.splitlines()) >= 8, bool(re.search(r"[Ii]mport", text)))
