"""The system packages ring 3 and the image build need, and the command that installs what is missing.

`python -m tests.testbed.packages` installs (as root, with apt-get); `--check` only says what is missing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time

PACKAGES = (
    "buildah",  # builds images/Containerfile
    "busybox-static",  # the pause image
    "debian-archive-keyring",  # on Ubuntu: the hosts are Debian
    "iproute2",
    "mmdebstrap",
    "openssh-client",
    "systemd-container",  # systemd-nspawn
)
_INSTALL_LIMIT_S = 900.0


class PackagesError(Exception):
    """The packages cannot be had; str = cause and remedy, one line."""


def missing() -> list[str]:
    """Names of PACKAGES that dpkg does not list as installed. Raises PackagesError on a system without dpkg."""
    if shutil.which("dpkg-query") is None:
        raise PackagesError("this is not Debian or Ubuntu (no dpkg-query): ring 3 needs their packages and root")
    asked = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *PACKAGES],
        capture_output=True,
        text=True,
        check=False,  # it fails when one of them is unknown, and still lists the others
    )
    installed = {line.split()[0] for line in asked.stdout.splitlines() if line.endswith(" installed")}
    return [name for name in PACKAGES if name not in installed]


def install() -> None:
    """Installs what is missing, with a line of progress for each thing apt-get does. Raises PackagesError."""
    wanted = missing()
    if not wanted:
        print(f"packages: all {len(PACKAGES)} are installed", flush=True)
        return
    command = f"apt-get install --no-install-recommends {' '.join(wanted)}"
    if os.geteuid() != 0:
        raise PackagesError(f"{', '.join(wanted)} missing and not root to install them; run: sudo {command}")
    started = time.monotonic()
    print(f"packages: installing {', '.join(wanted)}", flush=True)
    _apt_get("update", "-q")
    _apt_get("install", "-q", "--yes", "--no-install-recommends", *wanted)
    still = missing()
    if still:
        raise PackagesError(f"apt-get said yes but {', '.join(still)} is not installed; run: {command}")
    print(f"packages: installed in {time.monotonic() - started:.0f} s", flush=True)


def _apt_get(*arguments: str) -> None:
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # Another apt on the machine (unattended-upgrades on a fresh one) holds the lock for a while: wait for it.
    argv = ["apt-get", "-o", "DPkg::Lock::Timeout=300", *arguments]
    last: list[str] = []
    try:
        with subprocess.Popen(
            argv, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as child:
            for line in child.stdout or ():
                last = [*last[-2:], line.strip()]
                if line.startswith(("Get:", "Unpacking", "Setting up", "E:", "W:")):
                    print(f"packages: {line.strip()[:110]}", flush=True)
            code = child.wait(timeout=_INSTALL_LIMIT_S)
    except OSError as e:
        raise PackagesError(f"apt-get cannot be run ({e.strerror}): ring 3 needs Debian or Ubuntu") from e
    if code != 0:
        raise PackagesError(f"apt-get {arguments[0]} failed with code {code}: {' / '.join(filter(None, last))}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.testbed.packages", description=__doc__)
    parser.add_argument("--check", action="store_true", help="install nothing; exit 1 when something is missing")
    arguments = parser.parse_args()
    try:
        if arguments.check:
            wanted = missing()
            print(f"packages: missing: {', '.join(wanted)}" if wanted else "packages: nothing is missing")
            return 1 if wanted else 0
        install()
    except PackagesError as e:
        print(f"packages: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
