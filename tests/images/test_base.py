"""images.base keeps of Debian's packages what the image runs, and a container gets what the Containerfile says."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from images import base, build, python
from images.build import ROOT, BuildError

CONTAINERFILE = (ROOT / "images" / "Containerfile").read_text()
LIBRARIES = "usr/lib/x86_64-linux-gnu"
DYNLOAD = f"{base.STDLIB}/lib-dynload"
KEPT_ENCODINGS = ("ascii", "cp437", "cp1252", "idna", "iso8859_1", "iso8859_15", "latin_1", "utf_8", "utf_16_le")
LEFT_OUT = (
    f"{LIBRARIES}/gconv/UTF-7.so",
    "usr/bin/dpkg",
    "usr/bin/perl",
    "usr/sbin/update-ca-certificates",
    "etc/apt/apt.conf",
    "usr/share/man/man1/x.1",
    "usr/share/doc/made-up/README",
    f"{LIBRARIES}/libexpatw.so.1.8.10",
    f"{LIBRARIES}/ossl-modules/legacy.so",
    *(f"{base.STDLIB}/{name}" for name in ("test/test_os.py", "xml/sax/__init__.py", "ensurepip/__init__.py")),
    *(f"{base.STDLIB}/encodings/{name}.py" for name in ("cp1250", "iso8859_10", "mac_latin2", "koi8_r")),
    f"{base.STDLIB}/sitecustomize.py",
    f"{DYNLOAD}/_curses.so",
)
KEPT = (
    "bin/busybox",
    "lib/x86_64-linux-gnu/libc.so.6",
    "usr/bin/python3.11",
    "etc/debian_version",
    "usr/share/doc/made-up/copyright",
    "usr/share/ca-certificates/mozilla/b.crt",
    "usr/share/ca-certificates/mozilla/a.crt",
    f"{base.STDLIB}/os.py",
    f"{DYNLOAD}/_json.so",
    *(f"{base.STDLIB}/encodings/{name}.py" for name in KEPT_ENCODINGS),
)


def made(folder: Path, name: str, files: dict[str, str], *, version: str = "1.0") -> Path:
    """A Debian package with these files."""
    source = folder / name
    for path, text in files.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text)
    (source / "DEBIAN").mkdir()
    control = f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: x <x@x>\nDescription: made up\n"
    (source / "DEBIAN/control").write_text(control)
    path = folder / f"{name}_{version.replace(':', '%3a')}_amd64.deb"
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", source, path], capture_output=True, check=True)
    return path


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of an image that is made of one package."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "made-up/lib64").mkdir(parents=True)
    (folder / "made-up/lib64/ld-linux-x86-64.so.2").symlink_to("/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
    package = made(folder, "made-up", {path: Path(path).stem.upper() + "\n" for path in (*KEPT, *LEFT_OUT)})
    base.unpack([package], folder / "root")
    return folder / "root"


def test_a_package_keeps_what_runs_and_its_licence(root: Path) -> None:
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and not path.is_symlink()}
    made_here = {"etc/ssl/certs/ca-certificates.crt", "etc/passwd", "etc/group", "etc/nsswitch.conf"}
    kept = {re.sub("^(bin|lib)/", r"usr/\1/", path) for path in KEPT}
    assert kept | made_here | {"var/lib/dpkg/status.d/made-up"} == found
    assert "Package: made-up\n" in (root / "var/lib/dpkg/status.d/made-up").read_text()


def test_the_old_top_level_folders_are_links_into_usr(root: Path) -> None:
    links = {path.name: str(path.readlink()) for path in root.iterdir() if path.is_symlink()}
    assert {name: f"usr/{name}" for name in ("bin", "lib", "lib64", "sbin")} == links
    assert Path("/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2") == (root / "usr/lib64/ld-linux-x86-64.so.2").readlink()


def test_the_certificates_are_in_one_file_in_a_fixed_order(root: Path) -> None:
    assert "A\nB\n" == (root / "etc/ssl/certs/ca-certificates.crt").read_text()


def test_a_broken_package_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a_1_amd64.deb").write_text("<html>not found</html>")
    with pytest.raises(BuildError, match=r"a_1_amd64\.deb cannot be read \(.*\): remove it and try again"):
        base.unpack([tmp_path / "a_1_amd64.deb"], tmp_path / "root")


def test_no_command_of_busybox_installs_mounts_or_changes_the_user() -> None:
    assert set() == {"dpkg", "dpkg-deb", "rpm", "su", "login", "mount", "insmod", "reboot", "httpd"} & set(base.APPLETS)
    assert {"sh", "cat", "test", "timeout", "nslookup", "wget", "df", "touch"} <= set(base.APPLETS)


def test_the_bytecode_is_made_by_the_images_own_loader_and_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/lib64/ld-linux-x86-64.so.2 is an absolute link: it leads to the loader of this machine."""
    library = tmp_path / "python" / LIBRARIES
    library.mkdir(parents=True)
    (library / "ld-linux-x86-64.so.2").touch()
    ran: list[list[str]] = []
    monkeypatch.setattr(python, "run", lambda argv, **_: ran.append(argv))
    python.compile_all(tmp_path / "root", tmp_path / "python", print)
    loader = str(library / "ld-linux-x86-64.so.2")
    assert [loader, "--library-path", str(library), f"{tmp_path}/python/usr/bin/python3.11"] == ran[0][:4]
    assert "unchecked-hash" in ran[0]


# The Containerfile


def test_the_containerfile_gives_a_container_the_same_as_make_image() -> None:
    config = build._config("${REVISION}")
    last = re.sub(r"\\\n\s*", "", CONTAINERFILE.rpartition("FROM scratch\n")[2])
    version = config["Labels"]["org.opencontainers.image.version"]
    assert f"ARG VERSION={version}\n" in last
    labels = {name: value.replace(version, "${VERSION}") for name, value in config["Labels"].items()}
    assert labels == {
        name: quoted or plain for name, quoted, plain in re.findall(r'(org\.\S+?)=(?:"([^"]*)"|(\S+))', last)
    }
    assert [
        f"ENV {' '.join(config['Env'])}",
        f"USER {config['User']}",
        f"WORKDIR {config['WorkingDir']}",
        f"CMD {json.dumps(config['Cmd'])}",
    ] == re.findall(r"^(?:ENV|USER|WORKDIR|CMD) .*", last, re.MULTILINE)
    assert re.findall(r"^COPY --from=build /out/(\w+) /$", last, re.MULTILINE) == ["base", "dependencies", "readygate"]


def test_a_container_runs_as_a_user_that_the_image_knows(root: Path) -> None:
    assert f"{base.USER}:{base.USER}" == build._config("")["User"]
    users = [line.split(":") for line in (root / "etc/passwd").read_text().splitlines()]
    assert {"readygate": str(base.USER), "readygate-extender": str(base.EXTENDER_USER)} == {
        user[0]: user[2] for user in users if user[0].startswith("readygate")
    }


def test_the_containerfile_copies_what_docker_may_see() -> None:
    """.dockerignore leaves out everything that it does not name."""
    sent = set(re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    copies = re.findall(r"^COPY (?!--from)(.*) \S+$", CONTAINERFILE, re.MULTILINE)
    assert sent == {name for line in copies for name in line.split()}


def imported_modules(package: str) -> set[str]:
    """All modules, by their full names, that the files of a package of the product import; late imports too."""
    names: set[str] = set()
    for file_of_package in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(file_of_package.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add(node.module or "")
    return names


def test_every_module_of_the_standard_library_that_the_product_imports_is_in_the_image() -> None:
    names = {name for package in python.PACKAGES for name in imported_modules(package)}
    standard = {name for name in names if name.partition(".")[0] in sys.stdlib_module_names}
    assert {"json", "threading", "webbrowser"} <= standard
    paths = [f"{base.STDLIB}/{name.replace('.', '/')}{end}" for name in standard for end in (".py", "/__init__.py")]
    assert [] == [path for path in paths if base._LEFT_OUT.fullmatch(path)]
