"""A cached run of mypy or ansible-lint hides no error."""

import os
from pathlib import Path

import pytest

from tools import lint

SETTINGS = '[tool.mypy]\nstrict = true\npackages = ["agent"]\n'
ANSIBLE_LINT = """#!/bin/sh
echo run >> {runs}
echo "HOME has $(ls -A "$HOME" | wc -l) files, ANSIBLE_CONFIG is '$ANSIBLE_CONFIG'"
! grep -q bad site.yml || exit 7
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "readygate"


def checkout(folder: Path, value: str) -> Path:
    """A project of two modules, with the same time of change wherever it lies."""
    package = folder / "agent"
    package.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(SETTINGS)
    (package / "__init__.py").touch()
    (package / "base.py").write_text(f"LIMIT = {value}\n")
    (package / "user.py").write_text("from agent.base import LIMIT\n\ndoubled: int = 2 * LIMIT\n")
    for path in package.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return folder


def test_mypy_finds_an_error_of_another_checkout_of_same_size_and_time(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert lint.SUCCESS == lint.types(checkout(tmp_path / "first", "1234"))
    assert lint.HAS_ERRORS == lint.types(checkout(tmp_path / "second", '"22"'))
    told = capfd.readouterr().out
    assert f"{tmp_path / 'second' / 'agent' / 'user.py'}:3: error" in told
    assert lint.SUCCESS == lint.types(tmp_path / "first")


def test_mypy_parses_no_file_that_it_knows_from_another_checkout(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    parsed = []
    for name in ("first", "second"):
        assert lint.SUCCESS == lint.types(checkout(tmp_path / name, "1234"), ["--verbose"])
        parsed.append(sum("Parsing" in line and "/agent/" in line for line in capfd.readouterr().err.splitlines()))
    assert [3, 0] == parsed


def test_mypy_that_crashes_leaves_no_cache(tmp_path: Path, cache: Path) -> None:
    root = checkout(tmp_path / "first", "1234")
    assert 2 == lint.types(root, ["--no-such-option"])
    assert [] == [path for path in cache.iterdir() if path.is_dir()]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A playbook, for a stand-in of ansible-lint that fails if the text has the word bad."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ansible-lint").write_text(ANSIBLE_LINT.format(runs=tmp_path / "runs"))
    (programs / "ansible-lint").chmod(0o755)
    monkeypatch.setattr(lint, "BIN", programs)
    monkeypatch.setenv("ANSIBLE_CONFIG", "/of/the/user")
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks" / "site.yml").write_text("good")
    return tmp_path / "playbooks" / "site.yml"


def runs(root: Path) -> int:
    return (root / "runs").read_text().count("run")


@pytest.mark.usefixtures("site")
def test_ansible_lint_does_not_run_again_on_what_has_passed(tmp_path: Path, capfd) -> None:
    assert [0, 0] == [lint.playbooks(tmp_path, ["site.yml"]) for _ in range(2)]
    assert 1 == runs(tmp_path)
    assert 2 == capfd.readouterr().out.count("HOME has 0 files, ANSIBLE_CONFIG is ''")


def test_ansible_lint_runs_again_on_what_has_failed(tmp_path: Path, site: Path) -> None:
    site.write_text("bad")
    assert [7, 7] == [lint.playbooks(tmp_path, ["site.yml"]) for _ in range(2)]
    assert 2 == runs(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda site: site.write_text("goods"), id="the text of a playbook"),
        pytest.param(lambda site: site.rename(site.with_name("other.yml")), id="the name of a file"),
        pytest.param(lambda site: site.with_name(".ansible-lint").write_text("profile: min"), id="the configuration"),
        pytest.param(lambda site: site.chmod(0o755), id="that a file may be executed"),
    ],
)
def test_ansible_lint_runs_again_after_a_change_of(tmp_path: Path, site: Path, change) -> None:
    lint.playbooks(tmp_path, ["site.yml"])
    change(site)
    lint.playbooks(tmp_path, ["site.yml"])
    assert 2 == runs(tmp_path)


@pytest.mark.parametrize("name", lint.PLAYBOOKS)
def test_each_playbook_that_is_linted_exists(name: str) -> None:
    assert (lint.ROOT / "playbooks" / name).is_file()
