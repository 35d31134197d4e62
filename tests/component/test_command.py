"""What the command lines do alike."""

import sys
from importlib.metadata import version

import pytest

from component import command


def test_an_error_is_one_line_with_the_programs_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.complain("readygate", OSError("a\nb\x1b"), command.EXIT_USAGE) == 2
    assert capsys.readouterr().err == "readygate: a b\n"


def test_the_products_version_is_that_of_its_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/nowhere", *sys.path])
    assert command.product_version() == version("readygate")


def test_the_products_version_is_unknown_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/nowhere"])
    assert command.product_version() == "unknown"
