"""What the ready-made lists of checks take, for chart and roles: written with `python -m tests.charts.manifests`.

`pod`: by profile and name of a check, the folders of the host that are mounted (a mount follows a folder that is moved
away, and a socket that is made anew: so of those the parent), whether it takes root, and whether it asks other agents.
`node`: the checks themselves.
`rights`: for checks of one's own, by kind the keys of its settings that name folders of the host; of `parents` the
parent is mounted, as above, and what a kind writes in is writable.
"""

import json
from pathlib import Path
from typing import Any

from agent import settings
from agent.checks.catalogue import KINDS, rights_of
from agent.checks.profiles import PROFILES, checks_of
from agent.checks.rights import Rights
from tests.charts.rendering import CHART

ROLES = Path(__file__).resolve().parents[2] / "playbooks/roles"
FILES = (
    CHART / "files/profiles.json",
    ROLES / "readygate_agent/files/profiles.json",
    ROLES / "readygate_node/files/profiles.json",
)
ROOT = "/host"
PARENT_INSTEAD = ("confDir", "dataDir", "socket")


def text() -> str:
    document = {
        "kinds": list(KINDS),
        "parents": list(PARENT_INSTEAD),
        "rights": {name: _keys(kind.rights) for name, kind in KINDS.items()},
        "pod": {profile: _pod(profile) for profile in PROFILES},
        "node": {profile: {check["name"]: check for check in checks_of(profile, "node", ROOT)} for profile in PROFILES},
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _keys(rights: Rights) -> dict[str, Any]:
    def named(paths: tuple[str, ...]) -> list[str]:
        return [path for path in paths if not path.startswith("/")]

    taken = {"reads": named(rights.reads), "writes": named(rights.writes)}
    return {**taken, "root": rights.root, "peers": rights.lists_peers}


def _pod(profile: str) -> dict[str, Any]:
    parsed = settings.parse(f"mode: pod\nprofile: {profile}".encode(), {})
    found = {}
    for check, given in zip(parsed.checks, checks_of(profile, "pod", ROOT), strict=True):
        (kind,) = [kind for kind in KINDS if kind in given]
        parents = [_paths(given[kind].get(key)) for key in PARENT_INSTEAD]
        moved = {path for paths in parents for path in paths}
        rights = rights_of(check)
        found[check.name] = {
            "reads": _mounts(rights.reads, moved),
            "writes": _mounts(rights.writes, moved),
            "root": rights.root,
            "peers": rights.lists_peers,
        }
    return found


def _paths(value: object) -> list[str]:
    return [value] if isinstance(value, str) else [*value] if isinstance(value, list) else []


def _mounts(paths: tuple[str, ...], moved: set[str]) -> list[str]:
    of_host = [path for path in paths if path.startswith(f"{ROOT}/")]
    return [(str(Path(path).parent) if path in moved else path).removeprefix(ROOT) for path in of_host]
