"""What is said before and instead of an image, and what the record of Debian's packages is good for."""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from images import build, debian, push
from images.commands import BuildError
from images.wheels import ROOT

RECORD = "# head\namd64 libc6 2.36 sha256:aa\namd64 zlib1g 1.2 sha256:bb\narm64 libc6 2.36 sha256:cc\n"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(["amd64 zlib1g 1.2 sha256:bb", "amd64 libc6 2.36 sha256:aa"], [], id="as recorded"),
        pytest.param(
            ["amd64 libc6 2.37 sha256:dd", "amd64 zlib1g 1.2 sha256:bb"], ["libc6 2.36 -> 2.37"], id="one has moved on"
        ),
        pytest.param(
            ["amd64 libc6 2.36 sha256:ee", "amd64 zlib1g 1.2 sha256:bb"],
            ["libc6 2.36 -> 2.36"],
            id="other bytes under the same version",
        ),
        pytest.param(["amd64 libc6 2.36 sha256:aa"], ["zlib1g 1.2 -> none"], id="one is gone"),
        pytest.param(
            ["amd64 libc6 2.36 sha256:aa", "amd64 zlib1g 1.2 sha256:bb", "amd64 new 1 sha256:ff"],
            ["new none -> 1"],
            id="one is new",
        ),
    ],
)
def test_packages_are_held_against_the_record(rows, expected):
    assert expected == debian.differences(rows, RECORD)


def test_the_record_has_all_packages_of_all_architectures():
    lines = [line.split() for line in debian.LOCK.read_text().splitlines() if not line.startswith("#")]
    expected = [(architecture, name) for architecture in debian.ARCHITECTURES for name in debian.PACKAGES]
    assert expected == [(architecture, name) for architecture, name, _, _ in lines]
    assert debian.recorded_at_s() > 1_700_000_000


def test_where_the_archive_has_moved_on_an_image_can_be_had_and_a_recorded_one_not(monkeypatch, tmp_path):
    monkeypatch.setattr(debian, "LOCK", tmp_path / "debian.lock")
    debian.LOCK.write_text(RECORD)
    monkeypatch.setattr(debian, "_fetched", lambda _architecture, _progress: [])
    monkeypatch.setattr(debian, "_rows", lambda _a, _f: ["amd64 libc6 2.37 sha256:dd", "amd64 zlib1g 1.2 sha256:bb"])
    said: list[str] = []
    assert [] == debian.packages("amd64", said.append)
    assert ["other packages than images/debian.lock records (libc6 2.36 -> 2.37)" in line for line in said] == [True]
    with pytest.raises(BuildError, match=r"libc6 2\.36 -> 2\.37\): make lock-image, or name an archive of its day"):
        debian.packages("amd64", said.append, recorded=True)


@pytest.mark.parametrize(
    ("module", "arguments", "expected"),
    [
        pytest.param("build", ["--arch", "s390x"], "image: s390x is not known: amd64 or arm64", id="no such machine"),
        pytest.param("push", [], "push: REGISTRY is not set: make push REGISTRY=HOST/PATH", id="nowhere to push to"),
        pytest.param("push", ["--registry", "https://host/x"], "without https://", id="an address, not a place"),
        pytest.param("push", ["--registry", "host/Team"], "is no place for images", id="a path in capitals"),
        pytest.param("push", ["--registry", "host", "--tag", "a b"], "TAG=a b is no tag", id="no tag"),
    ],
)
def test_a_wrong_order_is_refused_in_one_line(module, arguments, expected):
    argv = [sys.executable, "-m", f"images.{module}", *arguments]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (1, "", True, 1) == (done.returncode, done.stdout, expected in done.stderr, len(done.stderr.splitlines()))


@pytest.mark.parametrize(
    ("registry", "expected"),
    [
        pytest.param("registry.example.com/team", "registry.example.com/team/readygate:1", id="host and path"),
        pytest.param("127.0.0.1:5000", "127.0.0.1:5000/readygate:1", id="a port"),
        pytest.param("[::1]:5000/x", "[::1]:5000/x/readygate:1", id="IPv6"),
        pytest.param("docker://host/a/", "host/a/readygate:1", id="as skopeo writes it"),
    ],
)
def test_the_image_is_called_readygate_below_the_registry(registry, expected):
    assert expected == push.name_of(registry, "1")


def test_the_time_of_the_image_is_given_or_the_commits(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000")
    assert 1000 == build.origin()[0]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(BuildError, match="SOURCE_DATE_EPOCH is 'yesterday', allowed: seconds since 1970"):
        build.origin()
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    monkeypatch.setenv("PATH", "/nowhere")
    assert (debian.recorded_at_s(), "unknown") == build.origin()


@pytest.mark.parametrize("old", [pytest.param(False, id="of today"), pytest.param(True, id="3.11.2, of Debian 12")])
def test_a_python_of_any_age_unpacks_absolute_links_and_sticky_folders(tmp_path, monkeypatch, old):
    trusted = getattr(tarfile, "fully_trusted_filter", None)
    if old and trusted is not None:  # else it is one of that age that runs this
        whole = tarfile.TarFile.extractall
        monkeypatch.delattr(tarfile, "fully_trusted_filter")
        monkeypatch.setattr(tarfile.TarFile, "extractall", lambda *args: whole(*args, filter=trusted))
    link, folder = tarfile.TarInfo("link"), tarfile.TarInfo("tmp")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
    folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        archive.addfile(link)
        archive.addfile(folder)
    with tarfile.open(fileobj=io.BytesIO(written.getvalue())) as archive:
        build.unpack(archive, tmp_path)
    assert Path("/etc/hostname") == (tmp_path / "link").readlink()
    assert 0o1777 == (tmp_path / "tmp").stat().st_mode & 0o7777
