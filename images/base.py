"""Unpacks the Debian part of the image: Python, its libraries, busybox for shell and commands, certificates.

`_LEFT_OUT` drops the files that nothing in the image uses: there is no package manager, no perl and no pip.
/var/lib/dpkg/status.d names the packages for scanners.
"""

import io
import re
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from tools.kit.commands import BuildError

STDLIB = "usr/lib/python3.11"
SITE = "usr/local/lib/python3.11/dist-packages"  # Debian's Python looks here for modules that are not Debian's
USER, EXTENDER_USER = 69375, 69376  # no other image has these, unlike 65532; the Ansible roles name them too

_MERGED = ("bin", "lib", "lib64", "sbin")  # bookworm has them in /usr; packages still name the old paths
# Of the standard library: tests, windows, installers, terminals, databases, mail, news, sound, XML, developer tools,
# second implementations; encodings other than Unicode, Latin and cp437 (zip archives); last, extension modules whose
# libraries the image lacks.
_LEFT_OUT = re.compile(
    rf"""
    usr/share/(?!ca-certificates/|common-licenses/|doc/[^/]+/copyright$).* | usr/sbin/.* | var/.* | root/.*
    | usr/bin/(?!python3\.11$|busybox$).* | etc/(?!os-release$|debian_version$).*
    | usr/lib/(tmpfiles|systemd|udev|mime)\b.*
    | usr/lib/[^/]+-linux-gnu/((gconv|engines-3|audit|ossl-modules)/.* | libexpatw\b.*
        | lib(BrokenLocale|c_malloc_debug|memusage|mvec|nsl|nss_compat|nss_hesiod|pcprofile|thread_db)\b.*)
    | {STDLIB}/((curses|dbm|distutils|ensurepip|idlelib|lib2to3|multiprocessing|pydoc_data|sqlite3|test|tkinter
        |turtledemo|unittest|venv|xml|xmlrpc|__phello__)/.* | EXTERNALLY-MANAGED
        | (turtle|antigravity|this|sitecustomize|aifc|asynchat|asyncore|bdb|cgi|cgitb|chunk|crypt|doctest|ftplib|imaplib
        |imghdr|mailbox|mailcap|modulefinder|nntplib|pdb|pickletools|poplib|pyclbr|pydoc|smtpd|smtplib|sndhdr|sunau
        |symtable|tabnanny|telnetlib|trace|wave|xdrlib|zipapp|_aix_support|_osx_support|_pydecimal|_pyio)\.py
        | encodings/(big5|cp(?!437|1252)\d|euc|gb|hz|iso2022|johab|shift_ji|mac_|iso8859_(?!1\.|15\.)|koi8|kz1048
        |ptcp154|tis_620|hp_roman8|palmos)\w*\.py
        | lib-dynload/(_codecs_\w+|_ctypes_test|_multibytecodec|_multiprocessing|_posixshmem|_test\w+|_xxtestfuzz
        |audioop|xxlimited\w*|ossaudiodev|_crypt|_curses\w*|_dbm|_gdbm|_sqlite3|_tkinter|nis|readline)\..*)
    """,
    re.VERBOSE,
)
# The commands of busybox except those that install, boot, mount, serve, or change the network or the user.
_APPLETS = """
    [ [[ arch arp arping ascii ash awk base64 basename bc cal cat chgrp chmod chown clear cmp comm cp crc32 cut
    date dc dd df diff dirname dmesg dnsdomainname dos2unix du echo egrep env expand expr factor false fgrep find
    fold free getopt grep groups gunzip gzip head hexdump hostid hostname id ionice ip ipcalc kill killall less
    link ln ls lsmod lsscsi md5sum mkdir mkfifo mktemp more mv nc netstat nice nl nproc nslookup od paste pidof
    ping ping6 printf ps pwd readlink realpath renice rev rm rmdir route sed seq setsid sh sha1sum sha256sum
    sha3sum sha512sum shuf sleep sort stat strings stty sync tac tail tar tee telnet test time timeout top touch
    tr traceroute traceroute6 true truncate ts tty uname unexpand uniq unix2dos unlink uptime usleep vi watch wc
    wget which who whoami xargs xxd xz xzcat yes zcat
"""
APPLETS = tuple(_APPLETS.split())
_CONFIGURATION = {
    "etc/passwd": (
        "root:x:0:0:root:/root:/sbin/nologin\n"
        f"readygate:x:{USER}:{USER}::/:/sbin/nologin\n"
        f"readygate-extender:x:{EXTENDER_USER}:{EXTENDER_USER}::/:/sbin/nologin\n"
        "nobody:x:65534:65534:nobody:/:/sbin/nologin\n"
    ),
    # Container runtimes take the group of a numeric user from /etc/passwd, and group 0 if the user is not listed.
    "etc/group": f"root:x:0:\nreadygate:x:{USER}:\nreadygate-extender:x:{EXTENDER_USER}:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
_FOLDERS = ("dev", "proc", "root", "run", "sys", "tmp", "usr/sbin", "var/tmp")


def unpack(packages: Iterable[Path], root: Path) -> None:
    """Fills `root` with files, links and configuration; without bytecode. Raises BuildError."""
    for name in _FOLDERS:
        (root / name).mkdir(parents=True)
    for package in packages:
        _unpack(package, root)
        write(root, f"var/lib/dpkg/status.d/{package.name.partition('_')[0]}", _dpkg_deb("--field", package))
    for name in _MERGED:
        if (root / "usr" / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    for name in APPLETS:
        (root / "usr/bin" / name).symlink_to("busybox")
    (root / "usr/bin/python3").symlink_to("python3.11")
    for path, text in _CONFIGURATION.items():
        write(root, path, text.encode())
    # As update-ca-certificates and the package openssl would make them.
    certificates = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    write(
        root, "etc/ssl/certs/ca-certificates.crt", b"".join(path.read_bytes().rstrip() + b"\n" for path in certificates)
    )
    (root / "usr/lib/ssl").mkdir(exist_ok=True)
    (root / "usr/lib/ssl/certs").symlink_to("/etc/ssl/certs")
    (root / "usr/lib/ssl/cert.pem").symlink_to("/etc/ssl/certs/ca-certificates.crt")


def write(root: Path, name: str, data: bytes, mode: int = 0o644) -> None:
    """Writes a file below `root` and makes its folders."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def _dpkg_deb(option: str, package: Path) -> bytes:
    done = subprocess.run(["dpkg-deb", option, package], capture_output=True, check=False)
    if done.returncode:
        raise BuildError(f"{package} cannot be read ({done.stderr.decode().strip()}): remove it and try again")
    return done.stdout


def _unpack(package: Path, root: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(_dpkg_deb("--fsys-tarfile", package))) as archive:
        # The packages are verified and have absolute links. Python before 3.11.4 has no filters and needs none.
        archive.extraction_filter = lambda member, _: member
        for member in archive:
            member.name = member.name.removeprefix("./")
            if member.name.partition("/")[0] in _MERGED:
                member.name = f"usr/{member.name}"
            if not member.isdir() and not _LEFT_OUT.fullmatch(member.name):
                archive.extract(member, root)
