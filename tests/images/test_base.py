"""What of Debian's packages gets into the image, and what a container of it gets."""

import ast
import re
import sys
import tomllib
from pathlib import Path

from images import base, containerfile, deb
from images.build import CONTAINERFILE
from images.tree import Tree, file, link
from tests.images import debs

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = "usr/lib/x86_64-linux-gnu"
DYNLOAD = f"{base.STDLIB}/lib-dynload"
KEPT_ENCODINGS = ("ascii", "cp437", "cp1252", "idna", "iso8859_1", "iso8859_15", "latin_1", "utf_8", "utf_16_le")
FILES: Tree = {
    "bin/busybox": file(debs.elf("libc.so.6"), 0o4755),
    "lib/x86_64-linux-gnu/libc.so.6": file(debs.elf()),
    "lib64/ld-linux-x86-64.so.2": link("/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"),
    f"{LIBRARIES}/gconv/UTF-7.so": file(debs.elf()),
    "usr/bin/dpkg": file(b"", 0o755),
    "usr/bin/perl": file(b"", 0o755),
    "usr/bin/python3.11": file(debs.elf("libc.so.6"), 0o755),
    "usr/sbin/update-ca-certificates": file(b"", 0o755),
    "etc/apt/apt.conf": file(b""),
    "etc/debian_version": file(b"12.0\n"),
    "usr/share/man/man1/x.1": file(b""),
    "usr/share/doc/made-up/copyright": file(b"free"),
    "usr/share/doc/made-up/README": file(b""),
    "usr/share/ca-certificates/mozilla/b.crt": file(b"BBB\n"),
    "usr/share/ca-certificates/mozilla/a.crt": file(b"AAA"),
    f"{base.STDLIB}/os.py": file(b"import abc"),
    f"{base.STDLIB}/alias.py": link("os.py"),
    f"{LIBRARIES}/libexpatw.so.1.8.10": file(debs.elf("libc.so.6")),
    f"{LIBRARIES}/ossl-modules/legacy.so": file(debs.elf("libc.so.6")),
    f"{base.STDLIB}/test/test_os.py": file(b""),
    f"{base.STDLIB}/xml/sax/__init__.py": file(b""),
    f"{base.STDLIB}/ensurepip/__init__.py": file(b""),
    **{f"{base.STDLIB}/encodings/{name}.py": file(b"") for name in ("cp1250", "iso8859_10", "mac_latin2", "koi8_r")},
    **{f"{base.STDLIB}/encodings/{name}.py": file(b"x") for name in KEPT_ENCODINGS},
    f"{base.STDLIB}/sitecustomize.py": link("/etc/python3.11/sitecustomize.py"),
    f"{DYNLOAD}/_json.so": file(debs.elf("libc.so.6")),
    f"{DYNLOAD}/_curses.so": file(debs.elf("libncursesw.so.6")),
}


def tree() -> Tree:
    return base.tree_of([deb.read(debs.deb("made-up", FILES))])


def test_of_a_package_is_left_what_runs_and_under_what_licence():
    kept = {path for path, entry in tree().items() if entry.kind == "file"}
    expected = {
        "usr/bin/busybox",
        "usr/bin/python3.11",
        f"{LIBRARIES}/libc.so.6",
        f"{base.STDLIB}/os.py",
        f"{base.STDLIB}/alias.py",
        f"{DYNLOAD}/_json.so",
        *(f"{base.STDLIB}/encodings/{name}.py" for name in KEPT_ENCODINGS),
        "usr/share/doc/made-up/copyright",
        "usr/share/ca-certificates/mozilla/a.crt",
        "usr/share/ca-certificates/mozilla/b.crt",
        "etc/ssl/certs/ca-certificates.crt",
        "etc/debian_version",
        "etc/passwd",
        "etc/group",
        "etc/nsswitch.conf",
        "var/lib/dpkg/status.d/made-up",
    }
    assert expected == kept


def test_all_is_below_usr_and_the_old_places_lead_there():
    found = tree()
    assert {name: f"usr/{name}" for name in ("bin", "lib", "lib64", "sbin")} == {
        path: entry.target for path, entry in found.items() if "/" not in path and entry.kind == "link"
    }
    assert "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" == found["usr/lib64/ld-linux-x86-64.so.2"].target


def test_nobody_gets_more_rights_by_running_something():
    assert {0o644, 0o755} == {entry.mode for entry in tree().values() if entry.kind == "file"}


def test_the_certificates_are_in_one_file_in_a_fixed_order():
    assert b"AAA\nBBB\n" == tree()["etc/ssl/certs/ca-certificates.crt"].data


def test_a_library_that_is_not_there_is_found_missing():
    broken = tree() | {"usr/bin/tool": file(debs.elf("libc.so.6", "libgone.so.1"), 0o755)}
    assert {} == base.missing_libraries(tree())
    assert {"usr/bin/tool": ["libgone.so.1"]} == base.missing_libraries(broken)


def test_no_command_of_busybox_installs_or_mounts_or_becomes_somebody_else():
    assert set() == {"dpkg", "dpkg-deb", "rpm", "su", "login", "mount", "insmod", "reboot", "httpd"} & set(base.APPLETS)
    assert {"sh", "cat", "test", "timeout", "nslookup", "wget", "df", "touch"} <= set(base.APPLETS)


# The Containerfile


def test_a_container_runs_as_a_user_that_the_image_knows_and_no_other_image_has():
    config = containerfile.config(CONTAINERFILE.read_text(), {})
    assert f"{base.USER}:{base.USER}" == config["User"]
    users = [line.split(":") for line in tree()["etc/passwd"].data.decode().splitlines()]
    assert {"readygate": str(base.USER), "readygate-extender": str(base.EXTENDER_USER)} == {
        user[0]: user[2] for user in users if user[0].startswith("readygate")
    }


def test_the_labels_say_what_it_is():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    labels = containerfile.config(CONTAINERFILE.read_text(), {"REVISION": "abc"})["Labels"]
    assert {
        "title": project["name"],
        "description": project["description"],
        "version": project["version"],
        "revision": "abc",
        "licenses": project["license"],
    } == {name.removeprefix("org.opencontainers.image."): value for name, value in labels.items()}


def test_the_containerfile_copies_what_docker_may_see():
    """By .dockerignore everything is left out that is not named there."""
    sent = set(re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    copies = re.findall(r"^COPY (?!--from)(.*) \S+$", CONTAINERFILE.read_text(), re.MULTILINE)
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


def test_every_module_of_the_standard_library_that_the_product_imports_is_in_the_image():
    packages = ("agent", "cli", "component", "extender", "kube")
    names = {name for package in packages for name in imported_modules(package)}
    standard = {name for name in names if name.partition(".")[0] in sys.stdlib_module_names}
    assert {"json", "threading", "webbrowser"} <= standard
    paths = {f"{base.STDLIB}/{name.replace('.', '/')}{end}" for name in standard for end in (".py", "/__init__.py")}
    given: Tree = {path: file(b"") for path in paths}
    assert sorted(paths) == sorted(paths & base.tree_of([deb.read(debs.deb("made-up", given))]).keys())
