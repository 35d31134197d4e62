"""Filters of the role that runs the agent on nodes.

They read the archives of `make image`, collect what checks need of a host, and report the result of all hosts.
"""

import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}  # as `uname -m` and images call them
ID_LENGTH = 12
PARENT_INSTEAD = ("confDir", "socket")
EVERYWHERE = ("/proc", "/sys", "/dev")  # every service sees them
SHOWN = 20

Document = dict[str, Any]


def readygate_node_images(paths: str | Iterable[str]) -> list[Document]:
    """Each image in the archives: {path, architecture, id, layers: [SHA-256 ...], environment: [NAME=VALUE ...]}."""
    found: list[Document] = []
    for given in [paths] if isinstance(paths, str) else paths:
        path = Path(given).expanduser().absolute()
        try:
            found += _images(path, path.stat().st_mtime_ns)
        except (OSError, tarfile.TarError, KeyError, ValueError) as e:
            raise AnsibleFilterError(
                f"{given} of readygate_node_archives is no archive of an image ({e}): build one with `make image`; "
                "paths are relative to the folder in which ansible-playbook was called"
            ) from e
    return found


@cache
def _images(path: Path, _modified_ns: int) -> list[Document]:
    """The images of one archive. Cached, because a task's variables read it several times."""
    with tarfile.open(path, "r:") as archive:
        return [
            {**_described(archive, one["digest"]), "path": str(path)}
            for one in _manifests(archive, _read(archive, "index.json"))
        ]


def _manifests(archive: tarfile.TarFile, index: Document) -> Iterator[Document]:
    for one in index["manifests"]:
        if one["mediaType"].endswith("index.v1+json"):
            yield from _manifests(archive, _blob(archive, one["digest"]))
        else:
            yield one


def _described(archive: tarfile.TarFile, digest: str) -> Document:
    manifest = _blob(archive, digest)
    config = _blob(archive, manifest["config"]["digest"])
    return {
        "architecture": config["architecture"],
        "id": digest.partition(":")[2][:ID_LENGTH],
        "layers": [layer["digest"].partition(":")[2] for layer in manifest["layers"]],
        "environment": config["config"].get("Env", []),
    }


def _blob(archive: tarfile.TarFile, digest: str) -> Document:
    return _read(archive, "blobs/" + digest.replace(":", "/"))


def _read(archive: tarfile.TarFile, name: str) -> Document:
    file = archive.extractfile(name)
    if file is None:
        raise KeyError(name)
    return json.load(file)


def readygate_node_image_for(found: Sequence[Document], machine: str) -> Document:
    """The image for a processor, as `uname -m` calls it."""
    wanted = MACHINES.get(machine, machine)
    for image in found:
        if image["architecture"] == wanted:
            return image
    there = ", ".join(sorted({image["architecture"] for image in found})) or "none"
    raise AnsibleFilterError(
        f"no archive of readygate_node_archives is for {wanted} ({machine}), only for {there}: add the one that "
        f"`make image ARCH={wanted}` builds, or remove the host from readygate_node_groups"
    )


def readygate_node_needs(checks: Iterable[Document], rights: Mapping[str, Document]) -> Document:
    """What the checks together take, of rights.json: {reads, writes, devices, capabilities: [...], host_pid, clock,
    pod_network: bool}. Paths are as the agent sees them, without those that every service sees."""
    needed: Document = {"reads": [], "writes": [], "devices": [], "capabilities": []}
    needed |= {"host_pid": False, "clock": False, "pod_network": False}
    for check in checks:
        for kind in [kind for kind in rights if kind in check]:
            stated, settings = rights[kind], check[kind] or {}
            for access in ("reads", "writes"):
                for key, default in stated[access].items():
                    needed[access] += _paths(key, settings.get(key, default))
            needed["devices"] += stated["devices"]
            needed["capabilities"] += stated["capabilities"]
            for flag in ("host_pid", "clock", "pod_network"):
                needed[flag] = needed[flag] or stated[flag]
    return {key: list(dict.fromkeys(value)) if isinstance(value, list) else value for key, value in needed.items()}


def _paths(key: str, value: str | Sequence[str] | None) -> list[str]:
    """Paths of one entry. The parent of a folder or socket, because a mount follows a folder that is moved away."""
    found = [] if value is None else [value] if isinstance(value, str) else value
    found = [str(Path(path).parent) for path in found] if key in PARENT_INSTEAD else found
    return [path for path in found if not path.startswith(EVERYWHERE)]


def readygate_node_sentence(
    outcomes: Iterable[tuple[str, Document]], is_check: bool, without: Iterable[Sequence[str]] = ()
) -> str:
    """The result of all hosts in one sentence.

    outcomes: (host, {word, said}) of each. without: for each host the checks that it lacks, in words.
    """
    hosts: dict[str, list[tuple[str, str]]] = {}
    lacking: dict[str, list[tuple[str, str]]] = {}
    for (host, outcome), texts in zip_longest(outcomes, without, fillvalue=()):
        hosts.setdefault(outcome["word"], []).append((host, outcome.get("said", "")))
        for text in texts:
            lacking.setdefault(text, []).append((host, ""))
    count = sum(map(len, hosts.values()))
    if "gone" in hosts:
        parts = [f"readygate was removed from {len(hosts['gone'])} of {count} nodes"]
    else:
        verb = "can run" if is_check else "runs"
        parts = [f"readygate {verb} in this version on {len(hosts.get('done', []))} of {count} nodes"]
    sick = [(host, said.partition(": ")[2]) for host, said in hosts.get("done", []) if said.startswith("not healthy")]
    for title, some in (
        ("node not healthy", sick),
        ("not reached, so run this again when they are back", hosts.get("unreached", [])),
        ("failed, nothing was changed or the change was undone", hosts.get("failed", [])),
        ("connection lost during the change, so run this again", hosts.get("begun", [])),
        ("not changed because too many had failed", hosts.get("left", [])),
        *sorted(lacking.items()),
    ):
        if some:
            parts.append(f"{title}: {_listed(some)}")
    return "; ".join(parts)


def _listed(found: Sequence[tuple[str, str]]) -> str:
    some = sorted(found)  # Ansible's groups have the order in which the hosts came
    shown = ", ".join(f"{host} ({said.strip()})" if said.strip() else host for host, said in some[:SHOWN])
    return shown + (f" and {len(some) - SHOWN} more" if len(some) > SHOWN else "")


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "readygate_node_images": readygate_node_images,
            "readygate_node_image_for": readygate_node_image_for,
            "readygate_node_needs": readygate_node_needs,
            "readygate_node_sentence": readygate_node_sentence,
        }
