"""How a wheel gets into the image without an installer."""

import zipfile
from pathlib import Path

import pytest

from images import wheels
from images.commands import BuildError
from images.tree import EXECUTABLE

METADATA = "Metadata-Version: 2.4\nName: some-tool\nVersion: 1.2\n"
FILES = {
    "some_tool/__init__.py": "",
    "some_tool/fast.c": "int main;",
    "some_tool/fast.so": "\x7fELF",
    "some_tool/py.typed": "",
    "some_tool-1.2.dist-info/METADATA": METADATA,
    "some_tool-1.2.dist-info/RECORD": "",
    "some_tool-1.2.dist-info/entry_points.txt": "[console_scripts]\nsome-tool = some_tool.__main__:main\n",
}


def wheel(folder: Path, files: dict[str, str]) -> Path:
    path = folder / "some_tool-1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_what_python_runs_is_unpacked_where_it_looks_and_its_version_is_known(tmp_path):
    tree, distribution = wheels.unpacked(wheel(tmp_path, FILES))
    expected = {"some_tool/__init__.py", "some_tool/fast.so"}
    expected |= {f"some_tool-1.2.dist-info/{name}" for name in ("METADATA", "entry_points.txt")}
    assert {f"{wheels.SITE}/{name}" for name in expected} == set(tree)
    assert ("some-tool", "1.2") == (distribution.name, distribution.version)


def test_only_readygate_gets_its_commands(tmp_path):
    tree, _ = wheels.unpacked(wheel(tmp_path, FILES), commands=True)
    command = tree["usr/local/bin/some-tool"]
    assert EXECUTABLE == command.mode
    assert command.data.decode().startswith("#!/usr/bin/python3.11\n")
    assert "from some_tool.__main__ import main\n" in command.data.decode()


def test_a_wheel_with_files_elsewhere_stops_the_build(tmp_path):
    with pytest.raises(BuildError, match=r"some_tool-1\.2\.data/scripts/x outside of Python's folder"):
        wheels.unpacked(wheel(tmp_path, {**FILES, "some_tool-1.2.data/scripts/x": ""}))


def test_readygates_own_wheel_is_made_of_the_sources_here(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "")  # as the Containerfile has it where nobody gives one
    tree, distribution = wheels.unpacked(wheels.project_wheel(tmp_path, lambda _text: None), commands=True)
    ours = {str(path.relative_to(wheels.ROOT)) for path in wheels.source_files() if path.suffix == ".py"}
    found = {path.removeprefix(f"{wheels.SITE}/") for path in tree if path.startswith(wheels.SITE)}
    assert ours == {path for path in found if path.endswith(".py")}
    assert "readygate" == distribution.name
    assert {"readygate", "kubectl-readygate", "readygate-agent", "readygate-extender", "readygate-status-api"} == {
        path.removeprefix("usr/local/bin/") for path in tree if path.startswith("usr/local/bin/")
    }
