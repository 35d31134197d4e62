"""Writes what each kind of check needs for the role readygate_node: `python -m tests.playbooks.node_rights`, part of
`make manifests`. Keys of a check's settings come with their defaults, paths with themselves.
"""

import json
import sys

import msgspec

from agent.checks.catalogue import KINDS, Kind
from tests.playbooks.rendering import ROLES

NAMESPACES = "/run/netns"  # where container runtimes keep the network namespaces of pods
FILE = ROLES / "readygate_node" / "files" / "rights.json"


def text() -> str:
    return json.dumps({name: _rights(kind) for name, kind in KINDS.items()}, indent=2, sort_keys=True) + "\n"


def _rights(kind: Kind) -> dict[str, object]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind.settings)}

    def default(entry: str) -> object:
        if entry.startswith("/"):
            return entry
        field = fields[entry]
        if field.required:
            return None
        value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        return msgspec.to_builtins(value)

    rights = kind.rights
    entered = {NAMESPACES: NAMESPACES} if rights.pod_network else {}
    return {
        "reads": {entry: default(entry) for entry in rights.reads} | entered,
        "writes": {entry: default(entry) for entry in rights.writes},
        "devices": rights.devices,
        "capabilities": [*rights.capabilities, *(["CAP_SYS_ADMIN"] if rights.pod_network else [])],
        "pod_network": rights.pod_network,
        "host_pid": rights.host_pid,
        "clock": rights.clock,
    }


def main() -> int:
    FILE.write_text(text())
    print(f"{FILE.name} of readygate_node written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
