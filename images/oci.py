"""Writes images in the format of the Open Container Initiative: layers, configuration, manifest, index, one archive.

The same input gives the same bytes. The archive is an OCI layout that `docker load` reads, too, by its manifest.json.
"""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_OCI = "application/vnd.oci.image"
_GZIP_LEVEL = 6  # 9 takes twice as long for 1 %
_STICKY = ("tmp", "var/tmp")


@dataclass(frozen=True)
class Layer:
    name: str
    blob: bytes  # the tar, compressed
    diff_id: str  # digest of the tar itself


@dataclass(frozen=True)
class Image:
    architecture: str
    layers: Sequence[Layer]
    config: Mapping[str, Any]  # what a container gets, in Docker's words: User, Env, Cmd, ...
    created_s: int


def layer(name: str, root: Path, mtime_s: int) -> Layer:
    """All files below `root`, owned by root, sorted, without rights that a caller could gain."""

    def normal(member: tarfile.TarInfo) -> tarfile.TarInfo:
        executable = member.isdir() or member.mode & 0o111
        member.mode = 0o777 if member.issym() else 0o1777 if member.name in _STICKY else 0o755 if executable else 0o644
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = mtime_s
        return member

    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(root.iterdir()):
            archive.add(path, path.name, filter=normal)  # sorts what is in a folder
    tar = written.getvalue()
    return Layer(name, gzip.compress(tar, _GZIP_LEVEL, mtime=0), digest(tar))


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def archive(images: Sequence[Image], name: str) -> bytes:
    """name: `HOST/REPOSITORY:TAG`. Several images, one for each architecture, are behind one index."""
    files = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"})}

    def store(data: bytes, kind: str, **more: object) -> dict[str, Any]:
        files[path_of(digest(data))] = data
        return {"mediaType": f"{_OCI}.{kind}", "digest": digest(data), "size": len(data), **more}

    manifests = []
    for image in images:
        layers = [store(one.blob, "layer.v1.tar+gzip") for one in image.layers]
        config = store(_config(image), "config.v1+json")
        manifest = {"schemaVersion": 2, "mediaType": f"{_OCI}.manifest.v1+json", "config": config, "layers": layers}
        platform = {"architecture": image.architecture, "os": "linux"}
        manifests.append(store(_json(manifest), "manifest.v1+json", platform=platform))
        blobs = [path_of(one["digest"]) for one in (config, *layers)]
        files["manifest.json"] = _json([{"Config": blobs[0], "RepoTags": [name], "Layers": blobs[1:]}])
    index = {"schemaVersion": 2, "mediaType": f"{_OCI}.index.v1+json"}
    if len(images) > 1:
        del files["manifest.json"]  # it cannot name several architectures
        manifests = [store(_json(index | {"manifests": manifests}), "index.v1+json")]
    # containerd reads the first name, all others the second.
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    files["index.json"] = _json(index | {"manifests": [manifests[0] | {"annotations": names}]})
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for path, data in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size, member.mtime = len(data), images[0].created_s
            tar.addfile(member, io.BytesIO(data))
    return written.getvalue()


def timestamp(seconds: int) -> str:
    """RFC 3339."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def path_of(digest: str) -> str:
    """Where the archive has the blob with this digest."""
    return f"blobs/{digest.replace(':', '/')}"


def _config(image: Image) -> bytes:
    created = timestamp(image.created_s)
    value: dict[str, Any] = {"created": created, "architecture": image.architecture, "os": "linux"}
    value["config"] = image.config
    value["rootfs"] = {"type": "layers", "diff_ids": [one.diff_id for one in image.layers]}
    value["history"] = [{"created": created, "created_by": f"images/build.py: {one.name}"} for one in image.layers]
    return _json(value)


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
