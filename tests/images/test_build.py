"""images.build refuses wrong arguments, describes what it built, and fixes time and revision of the image."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from images import base, build, debian, oci, python
from images.build import BuildError
from images.python import ROOT
from tests.images.test_base import made

RECORD = ["amd64 libc6 2.36 sha256:aa", "amd64 zlib1g 1.2 sha256:bb"]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(RECORD[::-1], "", id="as recorded"),
        pytest.param(["amd64 libc6 2.37 sha256:dd", RECORD[1]], "libc6 2.36 -> 2.37", id="a newer version"),
        pytest.param(["amd64 libc6 2.36 sha256:ee", RECORD[1]], "libc6 2.36 -> 2.36", id="other bytes, same version"),
        pytest.param(RECORD[:1], "zlib1g 1.2 -> none", id="removed"),
        pytest.param([*RECORD, "amd64 new 1 sha256:ff"], "new none -> 1", id="added"),
    ],
)
def test_packages_are_compared_with_the_record(rows, expected):
    assert expected == debian.differences(rows, RECORD)


def test_the_record_has_the_same_packages_for_each_architecture():
    lines = [line.split() for line in debian.LOCK.read_text().splitlines() if not line.startswith("#")]
    expected = [(architecture, name) for architecture in debian.ARCHITECTURES for name in debian.PACKAGES]
    assert expected == [(architecture, name) for architecture, name, _, _ in lines]
    assert debian.recorded_at_s() > 1_700_000_000


def test_packages_of_another_version_are_reported_or_refused(monkeypatch, tmp_path):
    path = made(tmp_path, "libc6", {"usr/share/doc/libc6/copyright": "free"}, version="1:2.37")
    monkeypatch.setattr(debian, "PACKAGES", ["libc6"])
    monkeypatch.setattr(debian, "cached", lambda *_: tmp_path)
    monkeypatch.setattr(debian, "LOCK", tmp_path / "debian.lock")
    debian.LOCK.write_text("# head\n" + "\n".join(RECORD[:1]))
    reported: list[str] = []
    ((row, found),) = debian.packages("amd64", reported.append).items()
    assert (path, True) == (found, row.startswith("amd64 libc6 1:2.37 sha256:"))
    assert ["other packages than images/debian.lock records (libc6 2.36 -> 1:2.37)" in line for line in reported] == [
        True
    ]
    with pytest.raises(BuildError, match=r"libc6 2\.36 -> 1:2\.37\): make lock-image, or name an archive of its day"):
        debian.packages("amd64", reported.append, recorded=True)
    path.unlink()
    with pytest.raises(BuildError, match="lacks libc6: remove the folder and try again"):
        debian.packages("amd64", reported.append)


def test_an_unknown_architecture_is_refused_in_one_line():
    argv = [sys.executable, "-m", "images.build", "--arch", "s390x"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (1, "", "image: s390x is not known: amd64 or arm64\n") == (done.returncode, done.stdout, done.stderr)


def test_a_push_without_a_registry_is_refused():
    done = subprocess.run(["make", "--assume-old=venv", "push"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (2, True) == (done.returncode, "REGISTRY is not set: make push REGISTRY=HOST/PATH" in done.stderr)


def test_the_time_of_the_image_is_given_or_that_of_the_commit(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000")
    assert 1000 == build.origin()[0]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(BuildError, match="SOURCE_DATE_EPOCH is 'yesterday', allowed: seconds since 1970"):
        build.origin()
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    monkeypatch.setenv("PATH", "/nowhere")
    assert (debian.recorded_at_s(), "unknown") == build.origin()


def test_the_files_of_each_layer_are_written_with_absolute_links_and_sticky_folders(tmp_path):
    root = tmp_path / "root"
    (root / "tmp").mkdir(parents=True)
    (root / "link").symlink_to("/etc/hostname")
    build.unpack(oci.Image("amd64", [oci.layer("base", root, 0)], {}, 0), tmp_path / "out")
    assert Path("/etc/hostname") == (tmp_path / "out/base/link").readlink()
    assert 0o1777 == (tmp_path / "out/base/tmp").stat().st_mode & 0o7777


def test_the_bill_of_materials_names_each_part(tmp_path):
    info = tmp_path / "Some_Wheel-3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: Some_Wheel\nVersion: 3\nLicense-Expression: MIT\n\nName: x\n"
    )
    bill = json.loads(build._bill(["amd64 libstdc++6 1:2.36-9+deb12u1 sha256:aa"], [tmp_path], "amd64", 1_000))
    assert ("CycloneDX", "1.5", "1970-01-01T00:16:40Z") == (
        bill["bomFormat"],
        bill["specVersion"],
        bill["metadata"]["timestamp"],
    )
    library, wheel = bill["components"]
    assert ("pkg:deb/debian/libstdc%2B%2B6@1%3A2.36-9%2Bdeb12u1?arch=amd64", [{"alg": "SHA-256", "content": "aa"}]) == (
        library["purl"],
        library["hashes"],
    )
    assert ("pkg:pypi/some-wheel@3", [{"license": {"name": "MIT"}}]) == (wheel["purl"], wheel["licenses"])


def test_readygate_is_installed_from_the_sources_here_with_its_commands(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "")  # the Containerfile passes it so where it is not given
    root = tmp_path / "root"
    python.install_project(root, lambda _text: None)
    assert [] == [*ROOT.glob("*.egg-info"), *ROOT.glob("dist")], "nothing is left in the checkout"
    site = root / base.SITE
    sources = {str(path.relative_to(ROOT)) for path in python.source_files() if path.suffix == ".py"}
    assert sources == {str(path.relative_to(site)) for path in site.rglob("*.py")}
    info = {path.name for path in next(site.glob("readygate-*.dist-info")).iterdir()}
    assert {"METADATA", "WHEEL", "entry_points.txt", "licenses"} == info
    commands = {path.name: path for path in (root / "usr/local/bin").iterdir()}
    assert {"readygate", "kubectl-readygate", "readygate-agent", "readygate-extender", "readygate-people"} == set(
        commands
    )
    text = commands["readygate-agent"].read_text()
    assert text.startswith("#!/usr/bin/python3.11\n")
    assert "from agent.__main__ import main\n" in text
    assert {0o755} == {path.stat().st_mode & 0o777 for path in commands.values()}
