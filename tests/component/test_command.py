"""What the command lines do alike."""

from importlib.metadata import PackageNotFoundError

import pytest

from component import command


def test_an_error_is_one_line_with_the_programs_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.complain("readygate", OSError("a\nb\x1b"), command.EXIT_USAGE) == 2
    assert capsys.readouterr().err == "readygate: a b\n"


def test_the_products_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert command.product_version()[0].isdigit()

    def missing(_name: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(command, "version", missing)
    assert command.product_version() == "unknown"
