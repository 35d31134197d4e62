"""What of Debian is in the image: Python, what it is linked with, busybox for shell and commands, certificates. Pure.

An allow list of packages (`debian.PACKAGES`) and a deny list of what of them nobody needs here. No package manager, no
perl, no pip; /var/lib/dpkg/status.d says to scanners which packages the files are of.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from images import elf
from images.deb import Deb
from images.tree import Entry, Tree, file, folder, link

PYTHON = "usr/bin/python3.11"
STDLIB = "usr/lib/python3.11"
SITE = "usr/local/lib/python3.11/dist-packages"  # where Debian's Python looks for what is not Debian's
TRIPLES = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
LOADERS = {"amd64": "usr/lib64/ld-linux-x86-64.so.2", "arm64": "usr/lib/ld-linux-aarch64.so.1"}
USER, EXTENDER_USER = 69375, 69376  # numbers that no other image has, as 65532; the roles name them too

_MERGED = ("bin", "lib", "lib32", "lib64", "sbin")  # since bookworm links into /usr, which packages do not all know
_LEFT_OUT = re.compile(
    "|".join(
        [
            r"usr/share/(?!ca-certificates/|common-licenses/|doc/[^/]+/copyright$).*",
            r"usr/lib/[^/]+-linux-gnu/(gconv|engines-3|audit)/.*",
            r"usr/lib/[^/]+-linux-gnu/lib(BrokenLocale|c_malloc_debug|memusage|mvec|nsl|nss_compat|nss_hesiod|pcprofile|thread_db)\b.*",
            r"usr/lib/[^/]+-linux-gnu/(libexpatw\b.*|ossl-modules/.*)",  # of wide characters, and ciphers of the past
            r"usr/sbin/.*|usr/bin/(?!python3\.11$|busybox$).*",
            r"etc/(?!os-release$|debian_version$).*",
            r"var/.*|root/.*|usr/lib/(tmpfiles|systemd|udev|mime)\b.*",
            # Of the standard library: what tests itself, draws windows, installs, or needs a terminal or a database;
            # mail, news, sound, XML, tools of programmers, modules written twice; encodings that are not
            # Unicode's, Latin's, or of archives (cp437).
            STDLIB + r"/(curses|dbm|distutils|ensurepip|idlelib|lib2to3|multiprocessing|pydoc_data|sqlite3|test|tkinter"
            r"|turtledemo|unittest|venv|xml|xmlrpc|__phello__)/.*",
            STDLIB + r"/(turtle|antigravity|this|sitecustomize)\.py|" + STDLIB + r"/EXTERNALLY-MANAGED",
            STDLIB + r"/(aifc|asynchat|asyncore|bdb|cgi|cgitb|chunk|crypt|doctest|ftplib|imaplib|imghdr|mailbox|mailcap"
            r"|modulefinder|nntplib|pdb|pickletools|poplib|pyclbr|pydoc|smtpd|smtplib|sndhdr|sunau|symtable|tabnanny"
            r"|telnetlib|trace|wave|xdrlib|zipapp|_aix_support|_osx_support|_pydecimal|_pyio)\.py",
            STDLIB
            + r"/encodings/(big5|cp(?!437|1252)\d|euc|gb|hz|iso2022|johab|shift_ji|mac_|iso8859_(?!1\.|15\.)|koi8"
            r"|kz1048|ptcp154|tis_620|hp_roman8|palmos)\w*\.py",
            STDLIB + r"/lib-dynload/(_codecs_\w+|_ctypes_test|_multibytecodec|_multiprocessing|_posixshmem|_test\w+"
            r"|_xxtestfuzz|audioop|xxlimited\w*|ossaudiodev)\..*",
        ]
    )
)
# All that busybox has but what installs, boots, mounts, serves or changes the network or the user.
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
    # Container runtimes take the group of a numeric user from /etc/passwd, and group 0 when it is not there.
    "etc/group": f"root:x:0:\nreadygate:x:{USER}:\nreadygate-extender:x:{EXTENDER_USER}:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
_FOLDERS = {"dev": 0o755, "proc": 0o555, "sys": 0o555, "run": 0o755, "tmp": 0o1777, "var/tmp": 0o1777, "root": 0o700}


def tree_of(packages: Sequence[Deb]) -> Tree:
    """Files, links and configuration; without bytecode."""
    tree: Tree = {path: folder(mode) for path, mode in _FOLDERS.items()}
    for package in packages:
        kept = {_merged(path): entry for path, entry in package.tree.items() if entry.kind != "folder"}
        for path, entry in kept.items():
            if not _LEFT_OUT.fullmatch(path):
                # A module that is a link would have no bytecode.
                beside = f"{path.rpartition('/')[0]}/{entry.target}"
                tree[path] = _plain(kept[beside] if path.endswith(".py") and beside in kept else entry)
        tree[f"var/lib/dpkg/status.d/{package.name}"] = file(package.control.encode())
    tree = _without_unlinkable(tree)
    for name in {path.partition("/")[0] for package in packages for path in package.tree} & set(_MERGED) | {
        "bin",
        "sbin",
    }:
        tree[name] = link(f"usr/{name}")
        tree.setdefault(f"usr/{name}", folder())
    tree |= {f"usr/bin/{name}": link("busybox") for name in APPLETS}
    tree["usr/bin/python3"] = link("python3.11")
    tree |= {path: file(text.encode()) for path, text in _CONFIGURATION.items()}
    return tree | _certificates(tree)


def missing_libraries(tree: Mapping[str, Entry]) -> dict[str, list[str]]:
    """Executables and libraries, and the names of what they are linked with that is not in the tree."""
    there = {path.rpartition("/")[2] for path in tree}
    found = {path: elf.read(entry.data) for path, entry in tree.items() if entry.kind == "file"}
    lacking = {path: [name for name in one.needed if name not in there] for path, one in found.items() if one}
    return {path: names for path, names in lacking.items() if names}


def machines(trees: Iterable[Mapping[str, Entry]]) -> set[str]:
    """Of all executables and libraries."""
    read = (elf.read(entry.data) for tree in trees for entry in tree.values() if entry.kind == "file")
    return {one.machine for one in read if one}


def _without_unlinkable(tree: Tree) -> Tree:
    """Modules of the standard library go where their library is not there: databases, terminals, NIS."""
    lacking = {path for path in missing_libraries(tree) if path.startswith(f"{STDLIB}/lib-dynload/")}
    return {path: entry for path, entry in tree.items() if path not in lacking}


def _merged(path: str) -> str:
    return f"usr/{path}" if path.partition("/")[0] in _MERGED else path


def _plain(entry: Entry) -> Entry:
    """Without set-user-ID and the like; all may read it."""
    if entry.kind != "file":
        return entry
    return file(entry.data, 0o755 if entry.mode & 0o111 else 0o644)


def _certificates(tree: Mapping[str, Entry]) -> Tree:
    """What update-ca-certificates and the package openssl would put there."""
    found = sorted(path for path in tree if path.startswith("usr/share/ca-certificates/") and path.endswith(".crt"))
    bundle = b"".join(tree[path].data.rstrip(b"\n") + b"\n" for path in found)
    return {
        "etc/ssl/certs/ca-certificates.crt": file(bundle),
        "usr/lib/ssl/certs": link("/etc/ssl/certs"),
        "usr/lib/ssl/cert.pem": link("/etc/ssl/certs/ca-certificates.crt"),
    }
