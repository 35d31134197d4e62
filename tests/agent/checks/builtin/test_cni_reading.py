"""The check `cni` reads a file as the runtime does: by Go's rules for JSON, and libcni's for types.

Each row names the report that it is made of, by repository and number, or the rule of libcni.
"""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from agent.checks.builtin.cni import Check, Settings
from agent.checks.state import CheckState, Finding
from tools.kit.cases import cases

GOOD: dict[str, Any] = {"cniVersion": "0.3.1", "name": "pods", "plugins": [{"type": "bridge"}]}
ONE: dict[str, Any] = {"cniVersion": "0.3.1", "name": "pods", "type": "bridge"}
CONTAINERD_8514 = {"cniVersion": "1.0.0", "name": "cd", "plugins": [{"type": "bridge"}, {"type": "loopback"}]}
AZURE_918 = {
    "cniVersion": "0.3.0",
    "name": "azure",
    "adapterName": "",
    "plugins": [{"type": "bridge", "dns": {"Nameservers": ["10.0.0.10"], "Search": ["svc.cluster.local"]}}],
}


def found(root: Path, file: str, content: bytes | dict[str, Any]) -> Finding:
    conf, binaries = root / "net.d", root / "bin"
    conf.mkdir()
    binaries.mkdir()
    (conf / file).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    for name in ("bridge", "loopback"):
        (binaries / name).write_text("#!/bin/sh\n")
        (binaries / name).chmod(0o755)
    with closing(Check(Settings(str(conf), (str(binaries),)), 60.0)) as check:
        return check()


TEXT = json.dumps(GOOD).encode()
TWICE = b'{"name": "pods", "plugins": [{"type": "gone", "type": "bridge"}]}'


@cases(
    "file, content",
    ("a byte of Latin-1", "1.conflist", TEXT[:-1] + b', "note": "BM-\xfc"}'),
    ("keys of a plugin in any case", "1.conf", {"cniVersion": "0.3.1", "Name": "pods", "TYPE": "bridge"}),
    ("keys of a list's plugin in any case", "1.conflist", {**GOOD, "plugins": [{"Type": "bridge"}]}),
    ("keys of dns in any case (Azure/azure-container-networking#918)", "1.conflist", AZURE_918),
    ("the last of two", "1.conflist", TWICE),
    ("words for true and false", "1.conflist", {**GOOD, "disableCheck": "True", "disableGC": False}),
    ("no version", "1.conflist", {"name": "pods", "plugins": [{"type": "bridge"}]}),
    ("several versions, one of the future", "1.conflist", {**GOOD, "cniVersions": ["0.4.0", "9.0.0"]}),
    ("keys that nobody knows", "1.conflist", {**GOOD, "x": [1, None, {"y": 1e308}], "Plugins": 7}),
    ("null leaves a field as it was", "1.conf", {**ONE, "ipam": None, "capabilities": None, "dns": {"search": None}}),
    ("white space of all kinds", "1.conflist", TEXT.replace(b" ", b"\r\n\t")),
)
def test_what_the_runtime_loads(tmp_path: Path, file: str, content: bytes | dict[str, Any]) -> None:
    assert Finding(CheckState.PASSED, f"{file}: bridge, loopback") == found(tmp_path, file, content)


@cases(
    "file, content, said",
    ("a byte order mark", "1.conflist", b"\xef\xbb\xbf" + TEXT, "does not parse: it begins with a byte order mark"),
    ("UTF-16 (containerd/containerd#11940)", "1.conflist", TEXT.decode().encode("utf-16"), "a byte order mark"),
    ("zero bytes (Azure/azure-container-networking#642)", "1.conflist", bytes(512), "line 1, character 1: no value"),
    (
        "a comma too many (projectcalico/cni-plugin#389)",
        "1.conf",
        b'{"type": "bridge",\n}',
        "line 2, character 1: no key",
    ),
    ("a comment (containers/podman#2909)", "1.conflist", TEXT[:-1] + b", # mine\n}", "no key of an object"),
    ("a list in a .conf (containerd/containerd#8514, #11076)", "1.conf", CONTAINERD_8514, "network has no type"),
    ("a plugin in a .conflist (cri-o/cri-o#6541)", "1.conflist", ONE, "lists no plugins"),
    ("no name (cri-o/cri-o#6541)", "1.conflist", {"cniVersion": "1.0.0", "type": "loopback"}, "has no name"),
    ("no name in a .conf (containernetworking/plugins#167)", "1.conf", {"type": "bridge"}, "1.conf has no name"),
    ("an empty name", "1.conflist", {**GOOD, "name": ""}, "1.conflist has no name"),
    (
        "a name with a space (containernetworking/cni#698)",
        "1.conf",
        {**ONE, "name": "my net"},
        "invalid network name my net",
    ),
    ("a name that begins with a point", "1.conf", {**ONE, "name": ".net"}, "invalid network name .net"),
    ("a name in Latin-1", "1.conf", b'{"name": "B\xfcro", "type": "bridge"}', "invalid network name B\ufffdro"),
    (
        "Name in a list, whose own keys are exact",
        "1.conflist",
        {"Name": "n", "plugins": [{"type": "bridge"}]},
        "has no name",
    ),
    ("a number for the version", "1.conflist", {**GOOD, "cniVersion": 0.4}, "cniVersion is no text"),
    ("the same in a .conf", "1.conf", {**ONE, "cniVersion": 1}, "network: cniVersion: a number instead of a text"),
    ("a number for the name", "1.conflist", {**GOOD, "name": 1}, "name is no text"),
    ("yes for disableCheck", "1.conflist", {**GOOD, "disableCheck": "yes"}, "disableCheck is neither true nor false"),
    ("null for disableCheck", "1.conflist", {**GOOD, "disableCheck": None}, "disableCheck is neither true nor false"),
    ("a number for disableGC", "1.conflist", {**GOOD, "disableGC": 0}, "disableGC is neither true nor false"),
    ("an object for plugins", "1.conflist", {**GOOD, "plugins": {"type": "bridge"}}, "lists no plugins"),
    ("a text for a plugin", "1.conflist", {**GOOD, "plugins": ["bridge"]}, "plugin 0: a text instead of an object"),
    ("null for a plugin", "1.conflist", {**GOOD, "plugins": [None]}, "plugin 0 has no type"),
    (
        "a number for a type",
        "1.conflist",
        {**GOOD, "plugins": [{"type": 7}]},
        "plugin 0: type: a number instead of a text",
    ),
    (
        "a list of capabilities",
        "1.conf",
        {**ONE, "capabilities": ["portMappings"]},
        "capabilities: a list instead of an object",
    ),
    (
        "a capability that is a text",
        "1.conf",
        {**ONE, "capabilities": {"x": "true"}},
        "capabilities: a text instead of true",
    ),
    ("a text for ipam", "1.conf", {**ONE, "ipam": "host-local"}, "ipam: a text instead of an object"),
    ("a list for ipam.type", "1.conf", {**ONE, "IPAM": {"Type": []}}, "IPAM: Type: a list instead of a text"),
    (
        "a text for nameservers",
        "1.conf",
        {**ONE, "dns": {"nameservers": "10.0.0.1"}},
        "dns: nameservers: a text instead of a list",
    ),
    ("a text for prevResult", "1.conf", {**ONE, "prevResult": "x"}, "prevResult: a text instead of an object"),
    (
        "the first of two is checked",
        "1.conf",
        b'{"name": "n", "type": 1, "type": "bridge"}',
        "type: a number instead of",
    ),
    ("a version that is none", "1.conflist", {**GOOD, "cniVersions": ["1.0.0.0"]}, "has an entry that is no version"),
    (
        "a version beside them that is none",
        "1.conflist",
        {**GOOD, "cniVersions": [], "cniVersion": "v1"},
        "is no version",
    ),
    ("versions that are one text", "1.conflist", {**GOOD, "cniVersions": "1.0.0"}, "cniVersions is no list of texts"),
    ("a number that is too large", "1.conflist", TEXT[:-1] + b', "x": 1e999}', "too large"),
)
def test_what_the_runtime_refuses(tmp_path: Path, file: str, content: bytes | dict[str, Any], said: str) -> None:
    finding = found(tmp_path, file, content)
    assert (CheckState.FAILED, True) == (finding.state, said in finding.output), finding
