"""Each top-level folder and each Ansible role has a README that fits on a screen."""

import subprocess

import pytest

from tests.architecture.source import ROOT

LINES = 40


def folders() -> list[str]:
    """Folders at the top that git tracks, except hidden ones, and the roles."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    top = {path.partition("/")[0] for path in tracked.splitlines() if "/" in path and not path.startswith(".")}
    roles = {str(path.relative_to(ROOT)) for path in (ROOT / "playbooks" / "roles").iterdir() if path.is_dir()}
    return sorted(top | roles)


@pytest.mark.parametrize("folder", folders())
def test_a_folder_has_a_readme_of_one_screen(folder: str) -> None:
    readme = ROOT / folder / "README.md"
    assert readme.is_file()
    assert len(readme.read_text().splitlines()) <= LINES


def test_readmes_are_looked_for() -> None:
    assert {"agent", "docs", "playbooks", "playbooks/roles/readygate_node"} <= set(folders())
