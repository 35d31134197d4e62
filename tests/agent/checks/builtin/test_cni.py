"""The check `cni` takes the configuration as containerd does."""

import json
import marshal
import os
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent.checks.builtin.cni import Check, Settings
from agent.checks.state import CheckState, Finding
from tools.kit.cases import cases

LIST = {"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "bridge"}, {"type": "portmap"}]}


def check(conf_dir: Path, *bin_dirs: Path, **settings: Any) -> Finding:
    with closing(Check(Settings(str(conf_dir), tuple(str(folder) for folder in bin_dirs), **settings), 60.0)) as check:
        return check()


class Node:
    """A configuration folder and a folder of binaries."""

    def __init__(self, root: Path) -> None:
        self.conf, self.bin = root / "net.d", root / "bin"
        self.conf.mkdir()
        self.bin.mkdir()
        self.config("10-net.conflist", LIST)
        for name in ("bridge", "portmap", "loopback"):
            self.binary(name)

    def config(self, name: str, content: object) -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        (self.conf / name).write_text(text)

    def plugin(self, network: str, name: str, content: object) -> None:
        """A plugin that libcni looks for beside the list, in a folder that is called as the network."""
        (self.conf / network).mkdir(exist_ok=True)
        self.config(f"{network}/{name}", content)

    def binary(self, name: str, mode: int = 0o755) -> None:
        (self.bin / name).write_text("#!/bin/sh\n")
        (self.bin / name).chmod(mode)

    def find(self) -> Finding:
        return check(self.conf, self.bin.parent / "none", self.bin)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def gone(folder: str) -> Callable[[Node], None]:
    def remove(node: Node) -> None:
        path = getattr(node, folder)
        for file in path.iterdir():
            file.unlink()
        path.rmdir()

    return remove


def beside(network: dict[str, object], *plugins: tuple[str, object]) -> Callable[[Node], None]:
    """A list, and in the folder of its network these files."""

    def make(node: Node) -> None:
        node.config("00-a.conflist", network)
        for name, content in plugins:
            node.plugin("net", name, content)

    return make


BRIDGE, PORTMAP = {"type": "bridge"}, {"type": "portmap"}
ONLY, OWN = {"loadOnlyInlinedPlugins": True}, {"name": "net", "plugins": [PORTMAP]}
PASSES = [
    (
        "by file name",
        beside({"name": "net"}, ("2.conf", PORTMAP), ("1.conf", BRIDGE)),
        "00-a.conflist: bridge, portmap",
    ),
    ("in the list and next to it", beside(OWN, ("1.conf", BRIDGE)), "00-a.conflist: portmap, bridge"),
    ("next to a list that wants its own only", beside({**OWN, **ONLY}, ("1.conf", "{")), "00-a.conflist: portmap"),
    ("only .conf counts", beside(OWN, ("1.conflist", "{"), ("2.json", "{")), "00-a.conflist: portmap"),
    ("a config list", lambda _node: None, "10-net.conflist: bridge, portmap"),
    ("a config", lambda node: node.config("05-one.conf", {"name": "n", "type": "bridge"}), "05-one.conf: bridge"),
    ("a .json counts", lambda node: node.config("01.json", {"name": "n", "type": "portmap"}), "01.json: portmap"),
    ("a later broken file is ignored", lambda node: node.config("99-broken.conflist", "{"), "10-net"),
    ("other files are ignored", lambda node: node.config("00-note.txt", "{"), "10-net"),
    ("folders are ignored", lambda node: (node.conf / "00.conf").mkdir(), "10-net"),
]


@cases("change, expected", *PASSES)
def test_passed(node: Node, change: Callable[[Node], object], expected: str) -> None:
    change(node)
    found = node.find()
    assert found.state is CheckState.PASSED
    assert expected in found.output


FAILS = [
    ("half a plugin next to the list", beside({"name": "net"}, ("1.conf", "{")), "net/1.conf does not parse"),
    ("no type next to the list", beside({"name": "net"}, ("1.conf", {})), "net/1.conf: plugin has no type"),
    ("no binary of a plugin", beside({"name": "net"}, ("1.conf", {"type": "gone"})), "plugin gone not found"),
    ("none of its own only", beside({"name": "net", **ONLY}, ("1.conf", BRIDGE)), "lists no plugins"),
    ("none, and one next to it", beside({"name": "net", "plugins": []}, ("1.conf", BRIDGE)), "lists no plugins"),
    ("a number", beside({**OWN, "loadOnlyInlinedPlugins": 1}), "loadOnlyInlinedPlugins is neither true nor false"),
    ("a null in a name", beside({"name": "a\0b"}), "lists no plugins"),
    ("no folder", gone("conf"), "no network config found"),
    ("an empty folder", lambda n: (n.conf / "10-net.conflist").unlink(), "no network config found in"),
    ("an empty file comes first", lambda n: n.config("00-a.conflist", ""), "does not parse"),
    ("half a file", lambda n: n.config("00-a.conflist", '{"name": "n", "plu'), "does not parse"),
    ("a deep file", lambda n: n.config("00-a.conflist", "[" * 100_000), "does not parse"),
    ("no object", lambda n: n.config("00-a.conflist", "[]"), "is not a JSON object"),
    ("no name", lambda n: n.config("00-a.conflist", {"plugins": [{"type": "bridge"}]}), "has no name"),
    ("no plugins", lambda n: n.config("00-a.conflist", {"name": "n"}), "lists no plugins"),
    ("an empty list", lambda n: n.config("00-a.conflist", {"name": "n", "plugins": []}), "lists no plugins"),
    ("no type", lambda n: n.config("00-a.conflist", {"name": "n", "plugins": [{}]}), "plugin 0 has no type"),
    ("a list in a .conf", lambda n: n.config("00-a.conf", LIST), "network has no type"),
    ("a type with a slash", lambda n: n.config("00-a.conf", {"type": "../evil"}), "invalid plugin type"),
    ("no binary", lambda n: n.config("00-a.conf", {"type": "gone"}), "plugin gone not found in"),
    ("not executable", lambda n: n.binary("portmap", 0o644), "is not executable"),
    ("no folder of binaries", gone("bin"), "plugin bridge not found"),
    ("a huge file", lambda n: n.config("00-a.conf", "x" * (2**20 + 1)), "larger than 1 MiB"),
    ("a dead link comes first", lambda n: (n.conf / "00.conf").symlink_to("/no/such"), "cannot be read"),
    ("a link to itself", lambda n: (n.conf / "00.conf").symlink_to("00.conf"), "cannot be read"),
    ("a link to a folder", lambda n: (n.conf / "00.conf").symlink_to(n.bin), "not a regular file"),
    ("a device", lambda n: (n.conf / "00.conf").symlink_to("/dev/zero"), "not a regular file"),
    ("a null in a type", lambda n: n.config("00.conf", '{"type": "a\\u0000b"}'), "invalid plugin type"),
    ("half a character", lambda n: n.config("00.conf", '{"type": "\\ud800"}'), "invalid plugin type"),
    ("a type too long for a file", lambda n: n.config("00.conf", {"type": "x" * 300}), "not found in"),
    ("a huge number", lambda n: n.config("00.conf", "1" * 100_000), "does not parse"),
]


@cases("change, expected", *FAILS)
def test_failed(node: Node, change: Callable[[Node], object], expected: str) -> None:
    change(node)
    found = node.find()
    assert found.state is CheckState.FAILED
    assert expected in found.output


BOTH, NOT_FOUND = "10-net.conflist: bridge, portmap", "plugin portmap not found in {first}, {second}"
NOT_EXECUTABLE = "plugin portmap: {first}/portmap is not executable"


@cases(
    "first, second, expected",
    ("the second of two folders has all of them", {}, {"bridge": 0o755, "portmap": 0o755}, BOTH),
    ("each folder has one of them", {"bridge": 0o755}, {"portmap": 0o755}, BOTH),
    ("neither has one, and both are named", {"bridge": 0o755}, {}, NOT_FOUND),
    ("the first folder counts", {"bridge": 0o755, "portmap": 0o644}, {"portmap": 0o755}, NOT_EXECUTABLE),
)
def test_plugins_are_looked_for_in_one_folder_after_the_other(
    node: Node, tmp_path: Path, first: dict[str, int], second: dict[str, int], expected: str
) -> None:
    folders = {"first": tmp_path / "first", "second": tmp_path / "second"}
    for folder, modes in zip(folders.values(), (first, second), strict=True):
        folder.mkdir()
        for name, mode in modes.items():
            (folder / name).touch(mode)
    found = check(node.conf, *folders.values(), internal_loopback=True)
    assert (expected == BOTH, True) == (found.state is CheckState.PASSED, expected.format(**folders) in found.output)


def test_a_named_pipe_is_not_waited_for(node: Node) -> None:
    os.mkfifo(node.conf / "00.conflist")
    found: list[Finding] = []
    thread = threading.Thread(target=lambda: found.append(node.find()), daemon=True)
    thread.start()
    thread.join(10)
    assert [CheckState.FAILED] == [finding.state for finding in found]
    assert "not a regular file" in found[0].output


def test_what_cannot_be_looked_at_is_unknown(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = marshal.dumps({"error": [13, "Permission denied", str(node.conf / "10-net.conflist")]})
    monkeypatch.setattr("agent.checks.subprocess_reader.SCRIPT", f"import sys\nsys.stdout.buffer.write({refused!r})")
    found = node.find()
    assert found.state is CheckState.UNKNOWN
    assert found.output.endswith("10-net.conflist: Permission denied")


def crio(node: Node, name: str | None = None) -> Finding:
    settings = Settings(str(node.conf), (str(node.bin),), "crio", name)
    with closing(Check(settings, 60.0)) as check:
        return check()


@cases(
    "files, name, expected",
    ("a broken file", {"00-a.conf": "{"}, None, "10-net.conflist: bridge, portmap"),
    ("a missing binary", {"00-a.conf": {"name": "a", "type": "gone"}}, None, "10-net.conflist: bridge, portmap"),
    ("an empty list", {"00-a.conflist": {"name": "a", "plugins": []}}, None, "10-net.conflist: bridge, portmap"),
    ("the first good one", {"00-a.conf": {"name": "a", "type": "bridge"}}, None, "00-a.conf: bridge"),
    ("the named one", {"00-a.conf": {"name": "a", "type": "bridge"}}, "net", "10-net.conflist: bridge, portmap"),
    ("a nameless network is called as its file", {"20-b.json": {"type": "portmap"}}, "20-b.json", "20-b.json: portmap"),
)
def test_crio_passes_by_what_is_broken(node: Node, files: dict[str, object], name: str | None, expected: str) -> None:
    for file, content in files.items():
        node.config(file, content)
    assert Finding(CheckState.PASSED, expected) == crio(node, name)


def test_crio_without_any_good_file_says_what_is_wrong_with_each(node: Node) -> None:
    node.config("00-a.conf", "{")
    (node.bin / "bridge").unlink()
    found = crio(node)
    assert found.state is CheckState.FAILED
    assert f"no file is good: {node.conf}/00-a.conf does not parse: " in found.output
    assert f"plugin bridge not found in {node.bin}" in found.output


def test_crio_without_the_network_it_is_told_the_name_of(node: Node) -> None:
    expected = f"no good file is of network other: {node.conf}/10-net.conflist is of network net"
    assert Finding(CheckState.FAILED, expected) == crio(node, "other")
