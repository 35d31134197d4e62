"""Archives of images for the role readygate_node: small ones, and a real one whose agent is another program."""

import io
import json
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from images import oci

AGENT = "usr/local/bin/readygate-agent"
CONFIG = {"Env": ["PATH=/usr/local/bin", "PYTHONUNBUFFERED=1"]}


def small(path: Path, *architectures: str) -> Path:
    """With an image for each."""
    made = [oci.Image(architecture, [_layer("#!/bin/sh\n")], CONFIG, 0) for architecture in architectures]
    path.write_bytes(oci.archive(made, "localhost/readygate:dev"))
    return path


def _layer(script: str) -> oci.Layer:
    """Whose agent is a script."""
    with TemporaryDirectory() as name:
        agent = Path(name, AGENT)
        agent.parent.mkdir(parents=True)
        agent.write_text(script)
        agent.chmod(0o755)
        return oci.layer("a layer", Path(name), 0)


def with_another_agent(source: Path, target: Path, script: str) -> Path:
    """A layer more, in which the agent is a script."""
    with tarfile.open(source) as archive:
        blobs = {one.name: archive.extractfile(one).read() for one in archive if one.isfile()}  # type: ignore[union-attr]

    def put(data: bytes) -> str:
        blobs["blobs/" + oci.digest(data).replace(":", "/")] = data
        return oci.digest(data)

    index: dict[str, Any] = json.loads(blobs["index.json"])
    named = index["manifests"][0]
    manifest = json.loads(blobs["blobs/" + named["digest"].replace(":", "/")])
    layer = _layer(script).blob
    manifest["layers"].append({**manifest["layers"][0], "digest": put(layer), "size": len(layer)})
    named["digest"] = put(json.dumps(manifest).encode())
    blobs["index.json"] = json.dumps(index).encode()
    with tarfile.open(target, "w") as archive:
        for name, data in blobs.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return target
