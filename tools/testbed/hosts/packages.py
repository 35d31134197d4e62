"""Lists the system packages that ring 3 and the image need, and installs the missing ones.

`python -m tools.testbed.hosts.packages` installs them with apt-get, as root; `--check` only lists what is missing.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence

from tools.kit.commands import command

PACKAGES = (
    "busybox-static",  # the pause image
    "debian-archive-keyring",  # Ubuntu lacks it; the file systems of the image and of the hosts are Debian's
    "iproute2",
    "mmdebstrap",
    "openssh-client",
    "skopeo",
    "systemd-container",  # systemd-nspawn
)
_INSTALL_LIMIT_S = 900.0
UPGRADES_VARIABLE = "READYGATE_UPGRADES"


class PackagesError(Exception):
    """Packages cannot be installed; str = cause and remedy, one line."""


def missing(packages: Sequence[str] = PACKAGES) -> list[str]:
    """The packages that dpkg does not list as installed. Raises PackagesError on a system without dpkg."""
    if shutil.which("dpkg-query") is None:
        raise PackagesError("this is not Debian or Ubuntu (no dpkg-query): their packages are needed, and root")
    asked = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *packages],
        capture_output=True,
        text=True,
        check=False,  # it fails when one of them is unknown, and still lists the others
    )
    installed = {line.split()[0] for line in asked.stdout.splitlines() if line.endswith(" installed")}
    return [name for name in packages if name not in installed]


def install(packages: Sequence[str]) -> None:
    """Installs the missing packages and prints a line for each step of apt-get. Raises PackagesError."""
    wanted = missing(packages)
    if not wanted:
        print(f"packages: all {len(packages)} are installed", flush=True)
        return
    by_hand = f"apt-get install --no-install-recommends {' '.join(wanted)}"
    if os.geteuid() != 0:
        raise PackagesError(f"{', '.join(wanted)} missing and not root to install them; run: sudo {by_hand}")
    started = time.monotonic()
    _apt_get("update", "-q")
    simulated = subprocess.run(
        ["apt-get", "install", "--simulate", "--no-install-recommends", *wanted],
        capture_output=True,
        text=True,
        check=False,  # if it cannot be installed, the real apt-get reports why
        env={**os.environ, "LC_ALL": "C"},
    )
    new, upgraded = changes(simulated.stdout)
    print(f"packages: installing {', '.join(new or wanted)}", flush=True)
    if upgraded:
        # For example, systemd-container needs exactly the installed version of systemd.
        print(f"packages: UPGRADING installed packages that they depend on: {', '.join(upgraded)}", flush=True)
        if os.environ.get(UPGRADES_VARIABLE) == "no":
            raise PackagesError(f"{UPGRADES_VARIABLE}=no, so nothing was installed; by hand: {by_hand}")
        print(f"packages: ({UPGRADES_VARIABLE}=no would have refused this)", flush=True)
    _apt_get("install", "-q", "--yes", "--no-install-recommends", *wanted)
    still = missing(packages)
    if still:
        raise PackagesError(f"apt-get said yes but {', '.join(still)} is not installed; run: {by_hand}")
    print(f"packages: installed in {time.monotonic() - started:.0f} s", flush=True)


def changes(simulated: str) -> tuple[list[str], list[str]]:
    """The packages that `apt-get install --simulate` would add, and those it would upgrade as `NAME OLD -> NEW`."""
    found = re.findall(r"^Inst (\S+) (?:\[(\S+)\] )?\((\S+)", simulated, re.MULTILINE)
    return (
        [name for name, old, _ in found if not old],
        [f"{name} {old} -> {new}" for name, old, new in found if old],
    )


def _apt_get(*arguments: str) -> None:
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # unattended-upgrades holds the lock for minutes on a fresh machine: wait for it.
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
        raise PackagesError(f"apt-get cannot be run ({e.strerror}): this needs Debian or Ubuntu") from e
    if code != 0:
        raise PackagesError(f"apt-get {arguments[0]} failed with code {code}: {' / '.join(filter(None, last))}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.testbed.hosts.packages", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="install nothing; exit 1 if a package is missing")
    arguments = parser.parse_args()
    try:
        if not arguments.check:
            install(PACKAGES)
            return 0
        wanted = missing()
    except PackagesError as e:
        print(f"packages: {e}", file=sys.stderr)
        return 1
    print(f"packages: missing: {', '.join(wanted)}" if wanted else "packages: nothing is missing")
    return 1 if wanted else 0


if __name__ == "__main__":
    command(main)
