"""The system packages ring 3 needs, those of the image build included.

`python -m tools.testbed.hosts.packages` installs (as root, with apt-get); `--check` only says what is missing.
"""

from images import commands, packages

PACKAGES = (
    *packages.PACKAGES,
    *packages.PUSH_PACKAGES,
    "busybox-static",  # the pause image
    "iproute2",
    "openssh-client",
    "systemd-container",  # systemd-nspawn
)


def missing() -> list[str]:
    """Raises PackagesError on a system without dpkg."""
    return packages.missing(PACKAGES)


if __name__ == "__main__":
    commands.command(lambda: packages.main(PACKAGES, program="tools.testbed.hosts.packages"))
