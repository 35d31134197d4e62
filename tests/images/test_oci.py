"""images.oci writes layers and archives that containerd and docker read, and the same bytes each time."""

import gzip
import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from images import oci


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = tmp_path / "root"
    for name in ("usr/bin/tool", "etc/a.b/c", "tmp/x"):
        (files / name).parent.mkdir(parents=True)
        (files / name).write_text(name)
    (files / "usr/bin/tool").chmod(0o4711)
    (files / "usr/bin/alias").symlink_to("/usr/bin/tool")
    return files


def members(layer: oci.Layer) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer.blob))) as archive:
        return archive.getmembers()


def test_a_layer_is_sorted_owned_by_root_and_gives_no_rights(root: Path) -> None:
    found = members(oci.layer("a test", root, 1_000))
    expected = [
        ("etc", 0o755),
        ("etc/a.b", 0o755),
        ("etc/a.b/c", 0o644),
        ("tmp", 0o1777),
        ("tmp/x", 0o644),
        ("usr", 0o755),
        ("usr/bin", 0o755),
        ("usr/bin/alias", 0o777),
        ("usr/bin/tool", 0o755),
    ]
    assert expected == [(member.name, member.mode) for member in found]
    assert {(0, 0, 1_000, "")} == {(member.uid, member.gid, member.mtime, member.uname) for member in found}
    assert "/usr/bin/tool" == found[-2].linkname


def test_a_layer_is_the_same_bytes_after_its_files_were_touched(root: Path) -> None:
    first = oci.layer("a test", root, 1_000)
    os.utime(root / "tmp/x", (5, 5))
    (root / "etc").chmod(0o700)
    assert first == oci.layer("a test", root, 1_000)


def image(root: Path, architecture: str = "amd64") -> oci.Image:
    return oci.Image(architecture, [oci.layer("a test", root, 0)], {"User": "1:1", "Cmd": ["tool"]}, 1_000)


def read(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        return {one.name: files.extractfile(one).read() for one in files}  # type: ignore[union-attr]


def blob(files: dict[str, bytes], descriptor: dict) -> bytes:
    data = files[oci.path_of(descriptor["digest"])]
    assert (descriptor["size"], descriptor["digest"]) == (len(data), oci.digest(data))
    return data


def test_an_archive_leads_from_its_name_to_the_layers(root: Path) -> None:
    files = read(oci.archive([image(root)], "host/readygate:1"))
    (first,) = json.loads(files["index.json"])["manifests"]
    assert {"io.containerd.image.name": "host/readygate:1", "org.opencontainers.image.ref.name": "1"} == first[
        "annotations"
    ]
    manifest = json.loads(blob(files, first))
    config = json.loads(blob(files, manifest["config"]))
    assert [oci.digest(gzip.decompress(blob(files, manifest["layers"][0])))] == config["rootfs"]["diff_ids"]
    assert ("amd64", "linux", "1970-01-01T00:16:40Z") == (config["architecture"], config["os"], config["created"])
    assert {"User": "1:1", "Cmd": ["tool"]} == config["config"]


def test_docker_reads_the_same_blobs_by_its_own_manifest(root: Path) -> None:
    files = read(oci.archive([image(root)], "host/readygate:1"))
    (only,) = json.loads(files["manifest.json"])
    assert ["host/readygate:1"] == only["RepoTags"]
    assert {only["Config"], *only["Layers"]} <= set(files)


def test_two_architectures_are_behind_one_index(root: Path) -> None:
    files = read(oci.archive([image(root, "amd64"), image(root, "arm64")], "host/readygate:1"))
    assert "manifest.json" not in files
    (first,) = json.loads(files["index.json"])["manifests"]
    manifests = json.loads(blob(files, first))["manifests"]
    assert ["amd64", "arm64"] == [one["platform"]["architecture"] for one in manifests]
    configs = [json.loads(blob(files, json.loads(blob(files, one))["config"])) for one in manifests]
    assert ["amd64", "arm64"] == [config["architecture"] for config in configs]


def test_two_archives_of_one_image_are_the_same_bytes(root: Path) -> None:
    assert oci.archive([image(root)], "a:1") == oci.archive([image(root)], "a:1")
