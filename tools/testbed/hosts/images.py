"""Container images of the control plane, written as a docker archive without any registry.

One image holds the Kubernetes binary and a link per component, and carries the names kubeadm asks for. `pause` is a
static busybox that sleeps: all a sandbox needs.
"""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.testbed.hosts.errors import HostsError
from tools.testbed.shared.binaries import kubernetes_version

REGISTRY = "registry.k8s.io"
PAUSE = f"{REGISTRY}/pause:3.10.2"
_CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler")
# What the kubeadm of each version calls its etcd.
ETCD = {"v1.35.4": "3.6.6-0", "v1.36.3": "3.6.8-0", "v1.37.1": "3.7.0-0"}
_BUSYBOX = Path("/bin/busybox")


@dataclass(frozen=True)
class Image:
    """`files`: absolute path inside -> the file to copy. `links`: absolute path inside -> its target."""

    tags: Sequence[str]
    files: Mapping[str, Path] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    entrypoint: Sequence[str] = ()


def kubeadm_images(binaries: Path) -> list[Image]:
    """What kubeadm's static pods name, from a folder with one executable (or link) per component."""
    version = kubernetes_version()
    files: dict[str, Path] = {}
    links: dict[str, str] = {}
    inside: dict[Path, str] = {}
    for name in (*_CONTROL_PLANE, "etcd"):
        source = (binaries / name).resolve()
        path = f"/usr/local/bin/{name}"
        if source in inside:  # one binary for all: once in the layer, then links
            links[path] = inside[source]
        else:
            files[path] = source
            inside[source] = path
    return [
        Image(
            tags=[
                *(f"{REGISTRY}/{name}:{version}" for name in _CONTROL_PLANE),
                f"{REGISTRY}/etcd:{ETCD[version]}",
            ],
            files=files,
            links=links,
        ),
        Image(tags=[PAUSE], files={"/busybox": _busybox()}, entrypoint=["/busybox", "sleep", "2147483647"]),
    ]


def _busybox() -> Path:
    if not _BUSYBOX.exists():
        raise HostsError(f"no {_BUSYBOX} for the pause image: run python -m tools.testbed.hosts.packages as root")
    return _BUSYBOX


def write_archive(target: Path, images: Sequence[Image]) -> None:
    """A tar as `docker save` writes it; layers are not compressed."""
    manifest = []
    with tarfile.open(target, "w") as archive:
        for number, image in enumerate(images):
            layer = target.with_name(f"{target.name}.layer")
            _write_layer(layer, image)
            with layer.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            archive.add(layer, arcname=f"{number}/layer.tar")
            layer.unlink()
            config = json.dumps(
                {
                    "architecture": _architecture(),
                    "os": "linux",
                    "config": {
                        "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"],
                        "Entrypoint": list(image.entrypoint) or None,
                    },
                    "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
                    "history": [{"created": "1970-01-01T00:00:00Z"}],
                }
            ).encode()
            _add_bytes(archive, f"{number}/config.json", config)
            manifest.append(
                {"Config": f"{number}/config.json", "RepoTags": list(image.tags), "Layers": [f"{number}/layer.tar"]}
            )
        _add_bytes(archive, "manifest.json", json.dumps(manifest).encode())


def _architecture() -> str:
    """Go's name of this machine."""
    machine = os.uname().machine
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _write_layer(target: Path, image: Image) -> None:
    with tarfile.open(target, "w") as layer:
        for path, mode in (
            ("tmp", 0o1777),
            ("etc", 0o755),
            ("usr", 0o755),
            ("usr/local", 0o755),
            ("usr/local/bin", 0o755),
        ):
            entry = tarfile.TarInfo(path)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            layer.addfile(entry)
        for path, source in image.files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = source.stat().st_size, 0o755
            with source.open("rb") as file:
                layer.addfile(entry, file)
        for path, points_to in image.links.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, points_to
            layer.addfile(entry)


def _add_bytes(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))
