"""Images as the Open Container Initiative has them: layers, configuration, manifest, index, one archive. Pure.

The same input gives the same bytes. The archive is an OCI layout, and by its manifest.json what `docker load` reads.
"""

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from images.tree import Tree, file, to_tar

_OCI = "application/vnd.oci.image"

GZIP_LEVEL = 6  # 9 takes twice as long for 1 %


@dataclass(frozen=True)
class Layer:
    """blob: the tar, compressed. diff_id: of the tar itself. what: made it, for people."""

    blob: bytes
    diff_id: str
    what: str


@dataclass(frozen=True)
class Image:
    """config: what a container gets, in Docker's words (User, Env, Cmd, ...)."""

    architecture: str
    layers: Sequence[Layer]
    config: Mapping[str, Any]
    created_s: int


def compressed(tar: bytes) -> bytes:
    """The same bytes for the same tar, by the same zlib."""
    return gzip.compress(tar, GZIP_LEVEL, mtime=0)


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def archive(images: Sequence[Image], name: str) -> bytes:
    """name: `HOST/REPOSITORY:TAG`. Several images, of an architecture each, are behind one index."""
    blobs: dict[str, bytes] = {}

    def store(data: bytes) -> str:
        blobs[digest(data)] = data
        return digest(data)

    def described(data: bytes, kind: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        return {"mediaType": f"{_OCI}.{kind}", "digest": store(data), "size": len(data), **more}

    manifests, docker = [], []
    for image in images:
        layers = [described(one.blob, "layer.v1.tar+gzip") for one in image.layers]
        config = described(_config(image), "config.v1+json")
        manifest = {"schemaVersion": 2, "mediaType": f"{_OCI}.manifest.v1+json", "config": config, "layers": layers}
        platform = {"architecture": image.architecture, "os": "linux"}
        manifests.append(described(_json(manifest), "manifest.v1+json", platform=platform))
        docker.append(
            {
                "Config": _path(config["digest"]),
                "RepoTags": [name],
                "Layers": [_path(one["digest"]) for one in layers],
            }
        )
    if len(manifests) > 1:
        several = {"schemaVersion": 2, "mediaType": f"{_OCI}.index.v1+json", "manifests": manifests}
        manifests = [described(_json(several), "index.v1+json")]
    # containerd knows an image by the first, everybody else by the second.
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    index = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.index.v1+json",
        "manifests": [manifests[0] | {"annotations": names}],
    }
    tree: Tree = {
        "oci-layout": file(_json({"imageLayoutVersion": "1.0.0"})),
        "index.json": file(_json(index)),
        **{_path(key): file(data) for key, data in blobs.items()},
    }
    if len(images) == 1:
        tree["manifest.json"] = file(_json(docker))
    return to_tar(tree, images[0].created_s)


def timestamp(seconds: int) -> str:
    """RFC 3339."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _config(image: Image) -> bytes:
    created = timestamp(image.created_s)
    return _json(
        {
            "created": created,
            "architecture": image.architecture,
            "os": "linux",
            "config": dict(image.config),
            "rootfs": {"type": "layers", "diff_ids": [one.diff_id for one in image.layers]},
            "history": [{"created": created, "created_by": one.what} for one in image.layers],
        }
    )


def _json(value: Any) -> bytes:  # noqa: ANN401 - JSON
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
