"""The image is unpacked on a host whole or not at all, and by one run at a time."""

import fcntl
import json
import os
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from tests.playbooks.archives import AGENT, small
from tests.playbooks.rendering import ROLES
from tools.kit.ability import cannot_run

UNPACK = ROLES / "readygate_node" / "files" / "unpack.sh"
IMAGE = "0123456789ab"


class Host:
    """Its folder, and an archive on it."""

    def __init__(self, root: Path) -> None:
        if os.geteuid() != 0:
            cannot_run("files of root are unpacked, which only root may: sudo make test")
        self.folder, self.archive = root / "node", root / "node" / f"{IMAGE}.tar"
        self.folder.mkdir()
        small(self.archive, "amd64")
        with tarfile.open(self.archive) as archive:

            def read(name: str) -> dict[str, list[dict[str, str]]]:
                file = archive.extractfile(name)
                assert file is not None
                return dict(json.load(file))

            named = read("index.json")["manifests"][0]["digest"]
            manifest = read("blobs/" + named.replace(":", "/"))
        self.layers = [layer["digest"].partition(":")[2] for layer in manifest["layers"]]

    def unpack(self, *layers: str) -> "subprocess.Popen[str]":
        words = ["sh", str(UNPACK), str(self.folder), IMAGE, str(self.archive), *(layers or self.layers)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def there(self) -> list[str]:
        """What is on the host of images; what is left besides."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.glob("*/*") if path.is_dir())


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def ended(run: "subprocess.Popen[str]") -> tuple[int, str]:
    said, _ = run.communicate(timeout=60)
    return run.returncode, said


def test_it_is_there_whole_and_the_archive_is_gone(host: Host) -> None:
    assert (0, "") == ended(host.unpack())
    assert [f"images/{IMAGE}"] == host.there()
    assert (host.folder / "images" / IMAGE / AGENT).read_text() == "#!/bin/sh\n"
    assert not host.archive.exists()


def test_a_layer_that_was_damaged_on_its_way_leaves_nothing(host: Host) -> None:
    with tarfile.open(host.archive, "a") as archive:
        other = "f" * 64
        entry = tarfile.TarInfo(f"blobs/sha256/{other}")
        archive.addfile(entry)
    code, said = ended(host.unpack(other))
    assert (True, True) == (code != 0, f"the archive's layer {other} is damaged" in said)
    assert ([], False) == (host.there(), host.archive.exists())


def test_two_runs_at_once_unpack_it_once(host: Host) -> None:
    """A third one is at it when they begin."""
    with (host.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        both = [host.unpack(), host.unpack()]
        time.sleep(0.3)
        assert [] == host.there()
    assert [(0, ""), (0, "")] == [ended(run) for run in both]
    assert [f"images/{IMAGE}"] == host.there()
