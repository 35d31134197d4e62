"""The system packages the image build needs, and the command that installs what is missing.

`python -m images.packages` installs (as root, with apt-get); `--check` only says what is missing.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence

from images import commands

PACKAGES = (
    "debian-archive-keyring",  # on Ubuntu: the base is Debian
    "mmdebstrap",
)
PUSH_PACKAGES = ("skopeo",)
_INSTALL_LIMIT_S = 900.0
UPGRADES_VARIABLE = "READYGATE_UPGRADES"


class PackagesError(Exception):
    """The packages cannot be had; str = cause and remedy, one line."""


def missing(packages: Sequence[str] = PACKAGES) -> list[str]:
    """Those that dpkg does not list as installed. Raises PackagesError on a system without dpkg."""
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
    """Installs what is missing, with a line of progress for each thing apt-get does. Raises PackagesError."""
    wanted = missing(packages)
    if not wanted:
        print(f"packages: all {len(packages)} are installed", flush=True)
        return
    command = f"apt-get install --no-install-recommends {' '.join(wanted)}"
    if os.geteuid() != 0:
        raise PackagesError(f"{', '.join(wanted)} missing and not root to install them; run: sudo {command}")
    started = time.monotonic()
    _apt_get("update", "-q")
    simulated = subprocess.run(
        ["apt-get", "install", "--simulate", "--no-install-recommends", *wanted],
        capture_output=True,
        text=True,
        check=False,  # why it cannot be installed is told by the real one
        env={**os.environ, "LC_ALL": "C"},
    )
    new, upgraded = changes(simulated.stdout)
    print(f"packages: installing {', '.join(new or wanted)}", flush=True)
    if upgraded:
        # systemd-container, for one, wants the very version of the systemd that is there.
        print(f"packages: UPGRADING what is installed, as they need it: {', '.join(upgraded)}", flush=True)
        if os.environ.get(UPGRADES_VARIABLE) == "no":
            raise PackagesError(f"{UPGRADES_VARIABLE}=no, so nothing was installed; by hand: {command}")
        print(f"packages: ({UPGRADES_VARIABLE}=no would have stopped here)", flush=True)
    _apt_get("install", "-q", "--yes", "--no-install-recommends", *wanted)
    still = missing(packages)
    if still:
        raise PackagesError(f"apt-get said yes but {', '.join(still)} is not installed; run: {command}")
    print(f"packages: installed in {time.monotonic() - started:.0f} s", flush=True)


def changes(simulated: str) -> tuple[list[str], list[str]]:
    """What `apt-get install --simulate` would newly install, and what it would upgrade: `NAME OLD -> NEW`."""
    found = re.findall(r"^Inst (\S+) (?:\[(\S+)\] )?\((\S+)", simulated, re.MULTILINE)
    return (
        [name for name, old, _ in found if not old],
        [f"{name} {old} -> {new}" for name, old, new in found if old],
    )


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
        raise PackagesError(f"apt-get cannot be run ({e.strerror}): this needs Debian or Ubuntu") from e
    if code != 0:
        raise PackagesError(f"apt-get {arguments[0]} failed with code {code}: {' / '.join(filter(None, last))}")


def main(packages: Sequence[str] = PACKAGES, *, program: str = "images.packages") -> int:
    """The command line of whoever needs `packages`; returns the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description="Installs missing system packages.")
    parser.add_argument("--check", action="store_true", help="install nothing; exit 1 when something is missing")
    arguments = parser.parse_args()
    try:
        if arguments.check:
            wanted = missing(packages)
            print(f"packages: missing: {', '.join(wanted)}" if wanted else "packages: nothing is missing")
            return 1 if wanted else 0
        install(packages)
    except PackagesError as e:
        print(f"packages: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    commands.command(main)
