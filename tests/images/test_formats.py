"""The formats that the image is made of and made as: read as their makers write them, and the same bytes each time."""

import ctypes
import gzip
import io
import json
import tarfile
from pathlib import Path

import msgspec._core
import pytest

from images import containerfile, deb, elf, oci, sbom, tree
from images.tree import file, folder, from_tar, link, to_tar
from tests.images import debs

ROOT = Path(__file__).resolve().parents[2]
TREE = {
    "usr/bin/tool": file(b"#!", 0o755),
    "usr/bin/alias": link("tool"),
    "tmp": folder(0o1777),
    "etc/a.b/c": file(b""),
}


# Executables


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(debs.elf("libc.so.6", "libm.so.6"), elf.Elf("amd64", ("libc.so.6", "libm.so.6")), id="a library"),
        pytest.param(debs.elf("libc.so.6", machine="arm64"), elf.Elf("arm64", ("libc.so.6",)), id="of another machine"),
        pytest.param(b"#!/bin/sh\n", None, id="a script"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_an_executable_says_its_machine_and_what_it_is_linked_with(data, expected):
    assert expected == elf.read(data)


def test_this_python_is_read_as_the_linker_reads_it():
    path = next(path for path in map(Path, ("/proc/self/exe",)))
    found = elf.read(path.read_bytes())
    assert found is not None
    assert any(name.startswith("libc.so") for name in found.needed)


def test_what_a_loader_maps_is_enough_to_be_loaded(tmp_path):
    whole = Path(msgspec._core.__file__).read_bytes()
    alone = tmp_path / "alone.so"
    alone.write_bytes(elf.loaded(whole + b"debug information" * 1000))
    assert elf.read(whole) == elf.read(alone.read_bytes())
    assert alone.stat().st_size < len(whole)
    ctypes.PyDLL(str(alone))


@pytest.mark.parametrize("data", [b"#!/bin/sh\n", b""], ids=["a script", "nothing"])
def test_what_is_no_library_stays_as_it_is(data):
    assert data == elf.loaded(data)


# Packages


def test_a_package_says_what_it_is_and_what_is_in_it():
    found = deb.read(debs.deb("alpha", TREE, version="1:2.0"))
    assert ("alpha", "1:2.0", "amd64") == (found.name, found.version, found.architecture)
    assert {path for path, entry in TREE.items() if entry.kind != "folder"} <= set(found.tree)
    assert file(b"#!", 0o755) == found.tree["usr/bin/tool"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"<html>not found</html>", "no ar archive", id="a proxy's page"),
        pytest.param(debs.deb("a", TREE)[:-80], "cannot be read", id="cut"),
        pytest.param(b"!<arch>\n", "no control.tar", id="empty"),
        pytest.param(debs.deb("a", TREE, compression="zst"), "compressed by zstd", id="of Ubuntu"),
    ],
)
def test_what_is_no_package_is_refused(data, expected):
    with pytest.raises(deb.DebError, match=expected):
        deb.read(data)


# Trees


def test_a_tree_makes_the_same_tar_in_whatever_order_it_was_put_together():
    assert to_tar(TREE, 1_000) == to_tar(dict(reversed(TREE.items())), 1_000)


def test_a_tar_has_each_folder_before_what_is_in_it_and_all_of_it_is_roots():
    with tarfile.open(fileobj=io.BytesIO(to_tar(TREE, 1_000))) as archive:
        members = archive.getmembers()
    assert ["etc", "etc/a.b", "etc/a.b/c", "tmp", "usr", "usr/bin", "usr/bin/alias", "usr/bin/tool"] == [
        member.name for member in members
    ]
    assert {(0, 0, 1_000)} == {(member.uid, member.gid, member.mtime) for member in members}
    assert tree.Entry("folder", 0o1777) == from_tar(to_tar(TREE, 0))["tmp"]


# Images


def image(architecture: str = "amd64") -> oci.Image:
    tar = to_tar(TREE, 0)
    config = {"User": "1:1", "Cmd": ["tool"]}
    return oci.Image(architecture, [oci.Layer(oci.compressed(tar), oci.digest(tar), "a test")], config, 1_000)


def read(archive: bytes) -> dict[str, bytes]:
    return {path: entry.data for path, entry in from_tar(archive).items() if entry.kind == "file"}


def blob(files: dict[str, bytes], descriptor: dict) -> bytes:
    data = files[f"blobs/{descriptor['digest'].replace(':', '/')}"]
    assert (descriptor["size"], descriptor["digest"]) == (len(data), oci.digest(data))
    return data


def test_an_archive_leads_from_its_name_to_the_files():
    files = read(oci.archive([image()], "host/readygate:1"))
    (first,) = json.loads(files["index.json"])["manifests"]
    assert {"io.containerd.image.name": "host/readygate:1", "org.opencontainers.image.ref.name": "1"} == first[
        "annotations"
    ]
    manifest = json.loads(blob(files, first))
    config = json.loads(blob(files, manifest["config"]))
    layer = gzip.decompress(blob(files, manifest["layers"][0]))
    assert [oci.digest(layer)] == config["rootfs"]["diff_ids"]
    assert ("amd64", "linux", "1:1", "1970-01-01T00:16:40Z") == (
        config["architecture"],
        config["os"],
        config["config"]["User"],
        config["created"],
    )
    assert "usr/bin/tool" in from_tar(layer)


def test_docker_finds_the_same_files_by_its_own_manifest():
    files = read(oci.archive([image()], "host/readygate:1"))
    (only,) = json.loads(files["manifest.json"])
    assert ["host/readygate:1"] == only["RepoTags"]
    assert {only["Config"], *only["Layers"]} <= set(files)


def test_two_architectures_are_behind_one_index():
    files = read(oci.archive([image("amd64"), image("arm64")], "host/readygate:1"))
    (first,) = json.loads(files["index.json"])["manifests"]
    manifests = json.loads(blob(files, first))["manifests"]
    assert ["amd64", "arm64"] == [one["platform"]["architecture"] for one in manifests]
    configs = [json.loads(blob(files, json.loads(blob(files, one))["config"])) for one in manifests]
    assert ["amd64", "arm64"] == [config["architecture"] for config in configs]


def test_two_archives_of_one_image_are_the_same_bytes():
    assert oci.archive([image()], "a:1") == oci.archive([image()], "a:1")


# What a container gets

_CONTAINERFILE = """\
ARG BASE=some:base
FROM ${BASE} AS build
ENV PATH=/of/the/first/stage
FROM scratch
ARG VERSION=1
# A comment
COPY --from=build /out /
ENV A=b \\
    C="d e"
LABEL version=${VERSION} title="two words"
USER 1:2
WORKDIR /here
CMD ["tool", "--help"]
"""


def test_a_container_gets_what_the_last_stage_says():
    expected = {
        "Env": ["A=b", "C=d e"],
        "Labels": {"version": "2", "title": "two words"},
        "User": "1:2",
        "WorkingDir": "/here",
        "Cmd": ["tool", "--help"],
    }
    assert expected == containerfile.config(_CONTAINERFILE, {"VERSION": "2", "OTHER": "x"})


def test_an_instruction_that_is_not_understood_stops_the_build():
    with pytest.raises(ValueError, match="ONBUILD is not understood"):
        containerfile.config(_CONTAINERFILE + "ONBUILD RUN x\n", {})


# The bill of materials


def test_the_bill_of_materials_names_each_part_with_its_hash():
    package = deb.read(debs.deb("libc6", TREE, version="1:2.36-9+deb12u1"))
    metadata = (
        "Metadata-Version: 2.4\nName: Some_Wheel\nVersion: 3\nLicense-Expression: MIT\nLicense: other\n\nName: x\n"
    )
    product = sbom.Distribution("readygate", "0.1", "Apache-2.0", "00")
    wheels = [sbom.distribution(metadata, "aa")]
    bill = json.loads(sbom.document(product, [package], wheels, architecture="amd64", created_s=1_000))
    assert ("CycloneDX", "1.5", "readygate") == (
        bill["bomFormat"],
        bill["specVersion"],
        bill["metadata"]["component"]["name"],
    )
    libc, wheel = bill["components"]
    assert ("pkg:deb/debian/libc6@1%3A2.36-9%2Bdeb12u1?arch=amd64", package.sha256) == (
        libc["purl"],
        libc["hashes"][0]["content"],
    )
    assert ("pkg:pypi/some-wheel@3", [{"license": {"name": "MIT"}}]) == (wheel["purl"], wheel["licenses"])
    assert [libc["bom-ref"], wheel["bom-ref"]] == bill["dependencies"][0]["dependsOn"]
    again = sbom.document(product, [package], wheels, architecture="amd64", created_s=1_000)
    assert bill == json.loads(again)
