"""The module that writes several files in one call: what it changes, what it leaves, and what it shows."""

import json
import os
import subprocess
import sys

import pytest

from tests.playbooks.rendering import ROLES
from tools.kit.ability import cannot_run

MODULE = ROLES / "readygate_objects" / "library" / "readygate_files.py"
OWN = {"group": str(os.getgid())}


@pytest.fixture(autouse=True)
def _as_root():
    if os.getuid() != 0:
        cannot_run("files of root are written by root: sudo make test")


def run(folder, *, check=False, **given):
    """What the module returns, as on a host."""
    arguments = {"ANSIBLE_MODULE_ARGS": given | {"_ansible_check_mode": check, "_ansible_remote_tmp": str(folder)}}
    done = subprocess.run(
        [sys.executable, str(MODULE)], input=json.dumps(arguments), capture_output=True, text=True, check=False
    )
    return json.loads(done.stdout)


@pytest.fixture
def entries(tmp_path):
    folder = tmp_path / "made"
    return [
        {"path": str(folder), "mode": "0750", **OWN},
        {"path": str(folder / "file"), "content": "text\n", "mode": "0640", **OWN},
        {"path": str(folder / "program"), "content": "code\n", "mode": "0755", "shown": False, **OWN},
    ]


def test_a_second_call_changes_nothing(tmp_path, entries):
    first, again = run(tmp_path, entries=entries), run(tmp_path, entries=entries)
    assert (True, False) == (first["changed"], again["changed"]), (first, again)
    assert [entry["path"] for entry in entries] == first["written"]
    made = tmp_path / "made"
    assert ("text\n", "code\n") == ((made / "file").read_text(), (made / "program").read_text())
    modes = [oct(path.stat().st_mode & 0o7777) for path in (made, made / "file", made / "program")]
    assert ["0o750", "0o640", "0o755"] == modes
    assert ["file", "program"] == sorted(path.name for path in made.iterdir()), "no half of a file is left"


def test_check_mode_shows_what_would_change_and_changes_nothing(tmp_path, entries):
    shown = run(tmp_path, check=True, entries=entries)
    assert shown["changed"]
    assert not (tmp_path / "made").exists()
    assert {"a folder\n", "text\n"} == {one["after"] for one in shown["diff"]}, "a program is not shown"


@pytest.mark.parametrize("change", [{"content": "other\n"}, {"mode": "0600"}], ids=["its content", "its mode"])
def test_only_the_file_that_differs_is_written_again(tmp_path, entries, change):
    run(tmp_path, entries=entries)
    entries[1] |= change
    assert [entries[1]["path"]] == run(tmp_path, entries=entries)["written"]


def test_what_is_forgotten_goes_and_is_no_change(tmp_path, entries):
    run(tmp_path, entries=entries)
    (tmp_path / "verdict").touch()
    words = {"entries": entries, "forgotten": [str(tmp_path / "verdict"), str(tmp_path / "never-there")]}
    assert not run(tmp_path, **words)["changed"]
    assert not (tmp_path / "verdict").exists()


def test_a_folder_that_cannot_be_made_fails_with_its_name(tmp_path):
    (tmp_path / "file").touch()
    failed = run(tmp_path, entries=[{"path": str(tmp_path / "file" / "x"), "mode": "0755", **OWN}])
    assert failed["failed"]
    assert f"{tmp_path}/file/x cannot be written" in failed["msg"]
