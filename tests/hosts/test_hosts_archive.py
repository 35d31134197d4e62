"""The image as an archive: its size, its content, the same bytes twice, both architectures, a push to a registry.

Needs no hosts, but what builds them: Debian's archive once, and the packages of ring 3.
"""

import gzip
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Mapping

import pytest

from images import base, build, oci
from images.python import ROOT, source_files
from tests.hosts.registry import Registry
from tests.hosts.waiting import PATIENT_S

pytestmark = pytest.mark.usefixtures("able")
PACKED_LIMIT_MB, WHOLE_LIMIT_MB = 30, 75
_PROGRAMS = ("readygate", "readygate-agent", "readygate-extender", "readygate-people", "kubectl-readygate")
_LOADERS = {"amd64": "ld-linux-x86-64.so.2", "arm64": "ld-linux-aarch64.so.1"}
_MACHINES = {"amd64": 62, "arm64": 183}  # e_machine in the header of an executable


@pytest.fixture(scope="module")
def images() -> dict[str, oci.Image]:
    return {architecture: build.image_of(architecture, print)[0] for architecture in ("amd64", "arm64")}


@pytest.fixture(scope="module")
def trees(images: Mapping[str, oci.Image]) -> dict[str, dict[str, bytes]]:
    """The content of all files of each image; b"" for a folder and for a link."""
    found: dict[str, dict[str, bytes]] = {architecture: {} for architecture in images}
    for architecture, image in images.items():
        for layer in image.layers:
            with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer.blob))) as archive:
                for one in archive:
                    content = archive.extractfile(one) if one.isreg() else None
                    found[architecture][one.name] = content.read() if content else b""
    return found


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_the_image_is_small(images, trees, architecture):
    packed = sum(len(layer.blob) for layer in images[architecture].layers) / 1e6
    whole = sum(map(len, trees[architecture].values())) / 1e6
    print(f"{architecture}: {whole:.1f} MB, {packed:.1f} MB compressed")
    assert (True, True) == (packed <= PACKED_LIMIT_MB, whole <= WHOLE_LIMIT_MB), (packed, whole)


def test_a_new_version_of_readygate_changes_a_tenth_of_the_image(images):
    assert ["base", "dependencies", "readygate"] == [layer.name for layer in images["amd64"].layers]
    sizes = [len(layer.blob) for layer in images["amd64"].layers]
    assert sizes[-1] <= 0.1 * sum(sizes)


def test_a_second_build_gives_the_same_bytes(tmp_path, monkeypatch):
    """With an empty cache but for Debian's packages."""
    first = build.readygate_image(print)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "readygate").mkdir()
    for folder in first.parent.parent.glob("image-debs-*"):
        (tmp_path / "readygate" / folder.name).symlink_to(folder)
    again = build.readygate_image(print)
    assert first != again
    # By digest: pytest would search the differences of 20 MB for many minutes.
    names = (build.ARCHIVE, build.BILL)
    assert [oci.digest(first.with_name(n).read_bytes()) for n in names] == [
        oci.digest(again.with_name(n).read_bytes()) for n in names
    ]


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_every_executable_is_for_its_machine(trees, architecture):
    executables = {path: data for path, data in trees[architecture].items() if data.startswith(b"\x7fELF\x02\x01")}
    assert {_MACHINES[architecture]} == {data[18] + 256 * data[19] for data in executables.values()}
    assert [_LOADERS[architecture]] == [path.rpartition("/")[2] for path in executables if "/ld-linux" in path]


def test_every_executable_finds_its_libraries(images, tmp_path):
    """The image's own loader lists them, for this machine; those for arm64 are loaded in test_hosts_arm64.py."""
    build.unpack(oci.Image("", [oci.Layer("", one.blob, "") for one in images[build.native()].layers], {}, 0), tmp_path)
    loader = next(tmp_path.glob("usr/lib/*-linux-gnu/ld-linux-*"))
    grpc = next(tmp_path.rglob("cygrpc*.so"))
    extensions = [*(tmp_path / base.STDLIB / "lib-dynload").iterdir(), *(tmp_path / "usr/bin").glob("python3.*"), grpc]
    for path in extensions:
        argv = [loader, "--library-path", loader.parent, "--list", path]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert (0, False) == (done.returncode, "not found" in done.stdout), (path, done)
        outside = [line for line in done.stdout.splitlines() if "=> /" in line and f"=> {loader.parent}/" not in line]
        assert [] == outside, path


def test_both_have_the_same_python_and_the_same_readygate(trees):
    def files(architecture: str) -> dict[str, bytes]:
        """Without extension modules, which have the machine in their names, and how Python was built."""
        return {
            path: data
            for path, data in trees[architecture].items()
            if path.endswith((".py", ".pyc")) and "_sysconfigdata" not in path and "/msgspec-" not in path
        }

    amd, arm = files("amd64"), files("arm64")
    assert set(amd) == set(arm)
    assert [] == [path for path in amd if amd[path] != arm[path] and path.startswith(base.SITE)]
    extensions = {
        architecture: {
            path.rpartition("/")[2].partition(".")[0] for path in tree if path.endswith(".so") and ".cpython" in path
        }
        for architecture, tree in trees.items()
    }
    assert extensions["amd64"] == extensions["arm64"]


def test_the_image_holds_the_code_of_this_checkout_and_its_commands(trees):
    tree = trees["amd64"]
    for path in source_files():
        if path.suffix == ".py":
            assert path.read_bytes() == tree[f"{base.SITE}/{path.relative_to(ROOT)}"]
    assert {f"usr/local/bin/{name}" for name in _PROGRAMS} <= set(tree)


def test_the_image_has_no_installer_and_no_kubernetes_client(trees):
    commands = {path.rpartition("/")[2] for path in trees["amd64"] if path.split("/")[-2:-1] in (["bin"], ["sbin"])}
    assert set() == {"apt", "apt-get", "dpkg", "perl", "pip", "pip3", "easy_install", "gunicorn", "flask"} & commands
    assert {"sh", "python3", "readygate-agent"} <= commands
    modules = {
        path.removeprefix(root).partition("/")[0]
        for path in trees["amd64"]
        for root in (f"{base.SITE}/", f"{base.STDLIB}/")
        if path.startswith(root)
    }
    assert set() == {"pip", "setuptools", "ensurepip", "venv", "kubernetes", "test", "tkinter", "idlelib"} & modules
    assert {"agent", "extender", "msgspec", "ssl.py"} <= modules


def test_the_bill_of_materials_is_in_the_image_and_names_every_part(trees):
    written = build.readygate_image(print).with_name(build.BILL).read_bytes()
    inside = json.loads(trees["amd64"][build.INSIDE])
    assert json.loads(written) == inside
    names = {one["name"] for one in inside["components"]}
    assert {"libc6", "python3.11-minimal", "busybox", "msgspec", "flask", "httptools", "readygate"} <= names
    assert all(one["purl"] and (one.get("hashes") or one["licenses"]) for one in inside["components"])
    status = {path.rpartition("/")[2] for path in trees["amd64"] if path.startswith("var/lib/dpkg/status.d/")}
    assert status <= names


def test_a_push_puts_both_architectures_behind_one_name(images):
    with Registry() as registry:
        done = _make("push", f"REGISTRY={registry.address}/team", "TAG=t", "PUSH_OPTIONS=--dest-tls-verify=false")
        assert 0 == done.returncode, done.stdout + done.stderr
        index = registry.manifest("team/readygate", "t")
    name = done.stdout.strip().splitlines()[-1].partition("readygate_image: ")[2]
    assert f"{registry.address}/team/readygate:t@{oci.digest(index)}" == name
    manifests = json.loads(index)["manifests"]
    assert ["amd64", "arm64"] == [one["platform"]["architecture"] for one in manifests]
    pushed = json.loads(registry.manifest("team/readygate", manifests[0]["digest"]))
    assert [oci.digest(layer.blob) for layer in images["amd64"].layers] == [one["digest"] for one in pushed["layers"]]
    assert {one["digest"] for one in pushed["layers"]} <= set(registry.blobs)


def test_a_registry_that_refuses_stops_the_push_with_its_reason():
    with Registry(refuse=True) as registry:
        done = _make("push", f"REGISTRY={registry.address}/team", "TAG=t", "PUSH_OPTIONS=--dest-tls-verify=false")
    assert 0 != done.returncode
    assert "denied" in done.stderr or "unauthorized" in done.stderr.lower(), done.stderr


def _make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Without the set-up of .venv: what it calls is what `make push` calls."""
    argv = ["make", "--silent", "--assume-old=venv", *arguments]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(argv, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=PATIENT_S)
