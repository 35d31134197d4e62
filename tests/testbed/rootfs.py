"""Base file systems, made by mmdebstrap from Debian's archive and cached by the list of what is in them."""

import os
from collections.abc import Iterable
from pathlib import Path

from tests.testbed.binaries import Progress
from tests.testbed.hosts_cache import HostsError, cached, key_of, run

SUITE = "bookworm"
# A host: what a server installed for Kubernetes has, and python3 for Ansible.
HOST_PACKAGES = (
    "ca-certificates",
    "conntrack",
    "containerd",
    "containernetworking-plugins",
    "curl",
    "dbus",
    "iproute2",
    "iptables",
    "kmod",
    "nftables",
    "openssh-server",
    "openssl",
    "procps",
    "python3",
    "runc",
    "systemd",
    "systemd-sysv",
)
# What an image of a Python program stands on.
PYTHON_PACKAGES = ("ca-certificates", "python3", "python3-venv")
_SETTINGS = (
    "--variant=minbase",
    '--aptopt=Acquire::Languages "none"',
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/info/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
)


def host_base(progress: Progress) -> Path:
    """Root folder of a systemd machine with sshd and containerd. Shared by all hosts: never written to."""
    return _debian("host-base", HOST_PACKAGES, progress)


def python_base(progress: Progress) -> Path:
    """Root folder with python3 and CA certificates."""
    return _debian("python-base", PYTHON_PACKAGES, progress)


def _debian(kind: str, packages: Iterable[str], progress: Progress) -> Path:
    # Without one mmdebstrap takes the archive that belongs to the suite.
    mirror = os.environ.get("READYGATE_DEBIAN_MIRROR", "")
    settings = [*_SETTINGS, f"--include={','.join(packages)}"]

    def build(folder: Path) -> None:
        progress(f"making the {kind} file system (Debian {SUITE}), once")
        command = ["mmdebstrap", "--mode=root", *settings, SUITE, str(folder / "root"), *([mirror] if mirror else [])]
        try:
            run(command, what=f"mmdebstrap {kind}", log=folder / "mmdebstrap.log", progress=progress)
        except HostsError as e:
            where = mirror or "Debian's archive"
            raise HostsError(f"{e}; is {where} reachable? READYGATE_DEBIAN_MIRROR names another") from e

    return cached(kind, key_of([SUITE, *settings]), build, progress) / "root"
