"""The image as a file, before any node has it: its size, what is in it, the same again, another machine, a registry.

Needs no hosts, but what builds them: Debian's archive once, and the packages of ring 3.
"""

import json
import os
import subprocess
from collections.abc import Mapping

import pytest

from images import base, build, oci, push
from images.tree import Entry, from_tar, whole_bytes
from images.wheels import ROOT, source_files
from tests.hosts.registry import Registry
from tests.hosts.waiting import PATIENT_S

pytestmark = pytest.mark.usefixtures("able")
PACKED_LIMIT_MB, WHOLE_LIMIT_MB = 30, 75
_PROGRAMS = ("readygate", "readygate-agent", "readygate-extender", "readygate-status-api", "kubectl-readygate")


@pytest.fixture(scope="module")
def images() -> dict[str, oci.Image]:
    return {architecture: build.image_of(architecture, print)[0] for architecture in ("amd64", "arm64")}


@pytest.fixture(scope="module")
def trees(images: Mapping[str, oci.Image]) -> dict[str, dict[str, Entry]]:
    """All files of each."""
    return {
        architecture: {path: entry for layer in image.layers for path, entry in from_tar(layer.blob).items()}
        for architecture, image in images.items()
    }


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_it_is_small(images, trees, architecture):
    packed = sum(len(layer.blob) for layer in images[architecture].layers) / 1e6
    whole = whole_bytes(trees[architecture]) / 1e6
    print(f"{architecture}: {whole:.1f} MB, {packed:.1f} MB compressed")
    assert (True, True) == (packed <= PACKED_LIMIT_MB, whole <= WHOLE_LIMIT_MB), (packed, whole)


def test_a_new_version_of_readygate_moves_little(images):
    assert ["base", "dependencies", "readygate"] == [layer.what.split()[-1] for layer in images["amd64"].layers]
    sizes = [len(layer.blob) for layer in images["amd64"].layers]
    assert sizes[-1] <= 0.1 * sum(sizes)


def test_built_again_it_is_the_same_byte_for_byte(tmp_path, monkeypatch):
    """With a cache of its own, which has what was fetched and nothing that was made."""
    first = build.readygate_image(print)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "readygate").mkdir()
    for kind in ("debs", "wheels"):
        for folder in first.parent.parent.glob(f"image-{kind}-*"):
            (tmp_path / "readygate" / folder.name).symlink_to(folder)
    again = build.readygate_image(print)
    assert first != again
    # By digest: pytest would look for the differences of 20 MB for many minutes.
    names = (build.ARCHIVE, build.BILL)
    assert [oci.digest(first.with_name(n).read_bytes()) for n in names] == [
        oci.digest(again.with_name(n).read_bytes()) for n in names
    ]


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_every_executable_is_for_its_machine_and_finds_its_libraries(trees, architecture):
    assert {architecture} == base.machines([trees[architecture]])
    assert {} == base.missing_libraries(trees[architecture])
    interpreter = f"usr/{base.LOADERS[architecture].removeprefix('usr/')}"
    assert interpreter in trees[architecture]


def test_both_have_the_same_python_and_the_same_readygate(trees):
    """Nobody can run the one for arm64 here: what it would import is there."""

    def files(architecture: str) -> dict[str, bytes]:
        """But for extension modules, whose names tell the machine, and what tells how Python was built."""
        return {
            path: entry.data
            for path, entry in trees[architecture].items()
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


def test_it_holds_what_was_written_here_and_what_runs_it(trees):
    tree = trees["amd64"]
    for path in source_files():
        if path.suffix == ".py":
            assert path.read_bytes() == tree[f"{base.SITE}/{path.relative_to(ROOT)}"].data
    assert {f"usr/local/bin/{name}" for name in _PROGRAMS} <= set(tree)


def test_nothing_in_it_installs_and_no_large_client_comes_with_it(trees):
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


def test_its_bill_of_materials_is_in_it_and_names_every_part(trees):
    beside = build.readygate_image(print).with_name(build.BILL).read_bytes()
    inside = json.loads(trees["amd64"][build.INSIDE].data)
    assert json.loads(beside) == inside
    names = {one["name"] for one in inside["components"]}
    assert {"libc6", "python3.11-minimal", "busybox", "msgspec", "flask", "httptools"} <= names
    assert all(one["purl"] and one["hashes"] for one in inside["components"])
    status = {path.rpartition("/")[2] for path in trees["amd64"] if path.startswith("var/lib/dpkg/status.d/")}
    assert status <= names


def test_it_is_pushed_for_both_machines_behind_one_name(images):
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


def test_a_registry_that_refuses_is_told_in_one_line(images, monkeypatch, capsys):
    """With the images that are built already: `make push` builds them in the test before."""
    monkeypatch.setattr(push, "image_of", lambda architecture, _progress: (images[architecture], b""))
    with Registry(refuse=True) as registry:
        arguments = ["--registry", f"{registry.address}/team", "--tag", "t", "--options=--dest-tls-verify=false"]
        monkeypatch.setattr("sys.argv", ["push", *arguments])
        assert 1 == push.main()
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("push: ")]
    assert [True] == ["denied" in line or "unauthorized" in line.lower() for line in told], told


def _make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Without the set-up of .venv: what it calls is what `make push` calls."""
    argv = ["make", "--silent", "--assume-old=venv", *arguments]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(argv, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=PATIENT_S)
