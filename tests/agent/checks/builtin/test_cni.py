"""The check `cni` takes the configuration as containerd does."""

import json
import marshal
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.checks.builtin.cni import Check, Settings
from agent.checks.state import CheckState, Finding

LIST = {"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "bridge"}, {"type": "portmap"}]}


def check(conf_dir: Path, *bin_dirs: Path) -> Finding:
    return Check(Settings(str(conf_dir), tuple(str(folder) for folder in bin_dirs)), 60.0)()


class Node:
    """A configuration folder and a folder of binaries."""

    def __init__(self, root: Path) -> None:
        self.conf, self.bin = root / "net.d", root / "bin"
        self.conf.mkdir()
        self.bin.mkdir()
        self.config("10-net.conflist", LIST)
        for name in ("bridge", "portmap"):
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
ONLY = {"loadOnlyInlinedPlugins": True}
PASSES = [
    pytest.param(
        beside({"name": "net"}, ("2.conf", PORTMAP), ("1.conf", BRIDGE)),
        "00-a.conflist: bridge, portmap",
        id="plugins that lie beside the list, in the order of their files",
    ),
    pytest.param(
        beside({"name": "net", "plugins": [PORTMAP]}, ("1.conf", BRIDGE)),
        "00-a.conflist: portmap, bridge",
        id="some in the list, others beside it",
    ),
    pytest.param(
        beside({"name": "net", "plugins": [PORTMAP], **ONLY}, ("1.conf", "{")),
        "00-a.conflist: portmap",
        id="beside a list that wants its own plugins only",
    ),
    pytest.param(
        beside({"name": "net", "plugins": [PORTMAP]}, ("1.conflist", "{"), ("2.json", "{")),
        "00-a.conflist: portmap",
        id="beside it only .conf counts",
    ),
    pytest.param(lambda _node: None, "10-net.conflist: bridge, portmap", id="a config list"),
    pytest.param(
        lambda node: node.config("05-one.conf", {"name": "n", "type": "bridge"}), "05-one.conf: bridge", id="a config"
    ),
    pytest.param(
        lambda node: node.config("01.json", {"name": "n", "type": "portmap"}), "01.json: portmap", id="a .json counts"
    ),
    pytest.param(
        lambda node: node.config("99-broken.conflist", "{"), "10-net", id="a later broken one is not looked at"
    ),
    pytest.param(lambda node: node.config("00-note.txt", "{"), "10-net", id="other files are not looked at"),
    pytest.param(lambda node: (node.conf / "00.conf").mkdir(), "10-net", id="folders are not looked at"),
]


@pytest.mark.parametrize(("change", "expected"), PASSES)
def test_passed(node: Node, change: Callable[[Node], object], expected: str) -> None:
    change(node)
    found = node.find()
    assert found.state is CheckState.PASSED
    assert expected in found.output


FAILS = [
    pytest.param(beside({"name": "net"}, ("1.conf", "{")), "net/1.conf does not parse", id="half a plugin beside it"),
    pytest.param(beside({"name": "net"}, ("1.conf", {})), "net/1.conf: plugin has no type", id="no type beside it"),
    pytest.param(beside({"name": "net"}, ("1.conf", {"type": "gone"})), "plugin gone not found", id="no binary of one"),
    pytest.param(beside({"name": "net", **ONLY}, ("1.conf", BRIDGE)), "lists no plugins", id="none of its own only"),
    pytest.param(beside({"name": "net", "plugins": []}, ("1.conf", BRIDGE)), "lists no plugins", id="none, and beside"),
    pytest.param(
        beside({"name": "net", "plugins": [BRIDGE], "loadOnlyInlinedPlugins": 1}),
        "loadOnlyInlinedPlugins is neither true nor false",
        id="a number for a yes",
    ),
    pytest.param(beside({"name": "a\0b"}), "lists no plugins", id="a null in a name"),
    pytest.param(gone("conf"), "no network config found", id="no folder"),
    pytest.param(lambda n: (n.conf / "10-net.conflist").unlink(), "no network config found in", id="an empty folder"),
    pytest.param(lambda n: n.config("00-a.conflist", ""), "does not parse", id="an empty file comes first"),
    pytest.param(lambda n: n.config("00-a.conflist", '{"name": "n", "plu'), "does not parse", id="half a file"),
    pytest.param(lambda n: n.config("00-a.conflist", "[" * 100_000), "does not parse", id="a deep file"),
    pytest.param(lambda n: n.config("00-a.conflist", "[]"), "is not a JSON object", id="no object"),
    pytest.param(lambda n: n.config("00-a.conflist", {"plugins": [{"type": "bridge"}]}), "has no name", id="no name"),
    pytest.param(lambda n: n.config("00-a.conflist", {"name": "n"}), "lists no plugins", id="no plugins"),
    pytest.param(
        lambda n: n.config("00-a.conflist", {"name": "n", "plugins": []}), "lists no plugins", id="an empty list"
    ),
    pytest.param(
        lambda n: n.config("00-a.conflist", {"name": "n", "plugins": [{}]}), "plugin 0 has no type", id="no type"
    ),
    pytest.param(lambda n: n.config("00-a.conf", LIST), "network has no type", id="a list in a .conf"),
    pytest.param(lambda n: n.config("00-a.conf", {"type": "../evil"}), "invalid plugin type", id="a type with a slash"),
    pytest.param(lambda n: n.config("00-a.conf", {"type": "gone"}), "plugin gone not found in", id="no binary"),
    pytest.param(lambda n: n.binary("portmap", 0o644), "is not executable", id="not executable"),
    pytest.param(gone("bin"), "plugin bridge not found", id="no folder of binaries"),
    pytest.param(lambda n: n.config("00-a.conf", "x" * (2**20 + 1)), "larger than 1 MiB", id="a huge file"),
    pytest.param(lambda n: (n.conf / "00.conf").symlink_to("/no/such"), "cannot be read", id="a dead link comes first"),
    pytest.param(lambda n: (n.conf / "00.conf").symlink_to("00.conf"), "cannot be read", id="a link to itself"),
    pytest.param(lambda n: (n.conf / "00.conf").symlink_to(n.bin), "not a regular file", id="a link to a folder"),
    pytest.param(lambda n: (n.conf / "00.conf").symlink_to("/dev/zero"), "not a regular file", id="a device"),
    pytest.param(lambda n: n.config("00.conf", '{"type": "a\\u0000b"}'), "invalid plugin type", id="a null in a type"),
    pytest.param(lambda n: n.config("00.conf", '{"type": "\\ud800"}'), "invalid plugin type", id="half a character"),
    pytest.param(lambda n: n.config("00.conf", {"type": "x" * 300}), "not found in", id="a type too long for a file"),
    pytest.param(lambda n: n.config("00.conf", "1" * 100_000), "does not parse", id="a huge number"),
]


@pytest.mark.parametrize(("change", "expected"), FAILS)
def test_failed(node: Node, change: Callable[[Node], object], expected: str) -> None:
    change(node)
    found = node.find()
    assert found.state is CheckState.FAILED
    assert expected in found.output


BOTH, NOT_FOUND = "10-net.conflist: bridge, portmap", "plugin portmap not found in {first}, {second}"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param({}, {"bridge": 0o755, "portmap": 0o755}, BOTH, id="the second of two folders has all of them"),
        pytest.param({"bridge": 0o755}, {"portmap": 0o755}, BOTH, id="each folder has one of them"),
        pytest.param({"bridge": 0o755}, {}, NOT_FOUND, id="neither has one, and both are named"),
        pytest.param(
            {"bridge": 0o755, "portmap": 0o644},
            {"portmap": 0o755},
            "plugin portmap: {first}/portmap is not executable",
            id="one that the first has counts, as for the runtime, though the second has a better one",
        ),
    ],
)
def test_plugins_are_looked_for_in_one_folder_after_the_other(
    node: Node, tmp_path: Path, first: dict[str, int], second: dict[str, int], expected: str
) -> None:
    folders = {"first": tmp_path / "first", "second": tmp_path / "second"}
    for folder, modes in zip(folders.values(), (first, second), strict=True):
        folder.mkdir()
        for name, mode in modes.items():
            (folder / name).touch(mode)
    found = check(node.conf, *folders.values())
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
    monkeypatch.setattr("agent.checks.elsewhere.SCRIPT", f"import sys\nsys.stdout.buffer.write({refused!r})")
    found = node.find()
    assert found.state is CheckState.UNKNOWN
    assert found.output.endswith("10-net.conflist: Permission denied")


def crio(node: Node, name: str | None = None) -> Finding:
    settings = Settings(str(node.conf), (str(node.bin),), "crio", name)
    return Check(settings, 60.0)()


@pytest.mark.parametrize(
    ("files", "name", "expected"),
    [
        pytest.param({"00-a.conf": "{"}, None, "10-net.conflist: bridge, portmap", id="a broken file"),
        pytest.param(
            {"00-a.conf": {"name": "a", "type": "gone"}},
            None,
            "10-net.conflist: bridge, portmap",
            id="a missing binary",
        ),
        pytest.param(
            {"00-a.conflist": {"name": "a", "plugins": []}},
            None,
            "10-net.conflist: bridge, portmap",
            id="an empty list",
        ),
        pytest.param(
            {"00-a.conf": {"name": "a", "type": "bridge"}}, None, "00-a.conf: bridge", id="the first good one"
        ),
        pytest.param(
            {"00-a.conf": {"name": "a", "type": "bridge"}},
            "net",
            "10-net.conflist: bridge, portmap",
            id="the one that it is told the name of",
        ),
        pytest.param(
            {"20-b.json": {"type": "portmap"}},
            "20-b.json",
            "20-b.json: portmap",
            id="one without a name is called as its file",
        ),
    ],
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
