"""What stands in files, and which names in a folder: looks for a child process, see `elsewhere`. What takes
such a process long to import, `pathlib` and `json`, is not used."""

import os
import stat

LIMIT_BYTES = 2**20
LINKS = 8  # as many in a row as the kubelet never makes
PKI = "/var/lib/kubelet/pki"
OWNER_LIMIT_BYTES = 256


def read_files(folder: str, names: list[str]) -> list[list[str]]:
    """Of each file: name, content as latin-1, why it could not be read, and what is wrong with it. One of the three is
    set, none for a file that is not there. Never waits for a writer, as opening a named pipe would."""
    return [[name, *_read(folder, name)] for name in names]


def _read(folder: str, name: str) -> tuple[str, str, str]:
    file, led = os.path.join(folder, name), ""  # noqa: PTH118 - no pathlib
    try:
        for _ in range(LINKS):
            if not os.path.islink(file):  # noqa: PTH114 - as above
                return _regular(name, file)
            led = os.readlink(file)  # noqa: PTH115 - as above
            file, is_seen = _target(file, led)
            if not is_seen:
                return "", f"{name} leads to {led}, which is not seen from here", ""
    except FileNotFoundError:
        return "", "", f"{name} leads to {led}, which is not there" if led else _unlinked(folder, name)
    except OSError as e:
        return "", f"cannot read {e.filename or file}: {e.strerror}", ""
    return "", "", f"{name} leads in a circle"


def _regular(name: str, file: str) -> tuple[str, str, str]:
    """Raises OSError."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            return "", "", f"{name} is {'a folder' if stat.S_ISDIR(mode) else 'no regular file'}"
        content = os.read(descriptor, LIMIT_BYTES)
    finally:
        os.close(descriptor)
    if not content.strip(b"\0 \t\r\n"):
        return "", "", f"{name} holds nothing but zero bytes" if b"\0" in content else f"{name} is empty"
    return content.decode("latin-1"), "", ""


def _unlinked(folder: str, name: str) -> str:
    """A link NAME-current.pem of the kubelet's that is gone, while a file NAME-2026-01-04-10-11-12.pem that it led to
    is there. Not so while the kubelet is replacing the link: NAME-updated.pem is there (certificate_store.go)."""
    pair, end, _ = name.partition("current.pem")
    try:
        beside = names_in(folder) if end else []
    except OSError:
        return ""
    dated = [one for one in beside if one.startswith(pair) and one[len(pair) : len(pair) + 4].isdigit()]
    return f"{name} is not there, {max(dated)} is" if dated and f"{pair}updated.pem" not in beside else ""


def _target(link: str, led: str) -> tuple[str, bool]:
    """Where a link leads, and whether that place is seen from here: the kubelet's links are absolute, to a file beside
    them, and the host's folder may be mounted at another place."""
    folder, there = os.path.split(link)[0], os.path.split(led)[0]
    beside = f"{folder}/{os.path.split(led)[1]}"
    root = folder[: -len(PKI)] if folder.endswith(PKI) else ""  # where the host's files are mounted
    literal = root + led if led.startswith("/") else f"{folder}/{led}"
    if os.path.lexists(literal):
        return literal, True
    pair = os.path.split(link)[1].partition("current.pem")[0]
    is_its_own = pair != "" and led.startswith(f"{there}/{pair}")  # a link that the kubelet makes itself
    if beside != link and (there in ("", PKI) or is_its_own or (there.startswith("/") and folder.endswith(there))):
        return beside, True
    # Of an absolute path it is known only below the host's files that it is the host's.
    return literal, os.path.isdir(os.path.split(literal)[0]) and (root != "" or not led.startswith("/"))  # noqa: PTH112


def names_in(folder: str) -> list[str]:
    """A folder that is not there has none. Raises OSError."""
    try:
        return os.listdir(folder)  # noqa: PTH208 - names alone, of thousands
    except FileNotFoundError:
        return []


def names_and_owners_in(folder: str, at_most: int) -> tuple[list[str], list[list[str | float]] | None]:
    """Both of one moment; None where there are more names than that. Raises OSError."""
    names = names_in(folder)
    return names, _owners(folder, names) if len(names) <= at_most else None


def owners_in(folder: str) -> list[list[str | float]]:
    """Of the files in it: name, when it was written, and its first word. What cannot be read is left out. Never waits
    for a writer, as opening a named pipe would. Raises OSError."""
    return _owners(folder, names_in(folder))


def _owners(folder: str, names: list[str]) -> list[list[str | float]]:
    found: list[list[str | float]] = []
    for name in names:
        try:
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(os.path.join(folder, name), flags)  # noqa: PTH118 - of thousands
            with os.fdopen(descriptor, "rb") as opened:
                changed, words = os.fstat(descriptor).st_mtime, (opened.read(OWNER_LIMIT_BYTES) or b"").split()
        except OSError:
            continue
        if words:
            found.append([name, changed, words[0].decode("ascii", errors="replace")])
    return found
