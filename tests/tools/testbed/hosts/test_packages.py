"""tools.testbed.hosts.packages reports upgrades before apt-get changes the machine."""

import pytest

from tools.testbed.hosts import packages

SIMULATED = """\
NOTE: This is only a simulation!
The following packages will be upgraded:
  systemd
Inst systemd [252.38-1~deb12u1] (252.39-1~deb12u1 Debian:12.12/oldstable [amd64]) []
Inst systemd-container (252.39-1~deb12u1 Debian:12.12/oldstable [amd64])
Conf systemd (252.39-1~deb12u1 Debian:12.12/oldstable [amd64])
"""
UPGRADE = "packages: UPGRADING installed packages that they depend on: systemd 252.38-1~deb12u1 -> 252.39-1~deb12u1\n"


class Apt:
    """Replaces subprocess and apt-get: prints a simulation and records the steps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, simulated: str) -> None:
        self.done: list[str] = []
        self.stdout = simulated
        still = iter([["systemd-container"], []])
        monkeypatch.setattr(packages, "missing", lambda _packages: next(still))
        monkeypatch.setattr(packages.os, "geteuid", lambda: 0)
        monkeypatch.setattr(packages.subprocess, "run", lambda *_arguments, **_more: self)
        monkeypatch.setattr(packages, "_apt_get", lambda word, *_more: self.done.append(word))


def test_a_simulated_installation_is_split_into_new_and_upgraded():
    assert (["systemd-container"], ["systemd 252.38-1~deb12u1 -> 252.39-1~deb12u1"]) == packages.changes(SIMULATED)
    assert ([], []) == packages.changes("E: Unable to locate package\n")


def test_an_upgrade_is_printed_before_it_is_made(monkeypatch, capsys):
    apt = Apt(monkeypatch, SIMULATED)
    apt_get = packages._apt_get
    monkeypatch.setattr(packages, "_apt_get", lambda *words: (apt_get(*words), print(f"apt-get {words[0]}")))
    packages.install(["systemd-container"])
    written = capsys.readouterr().out
    assert written.index(UPGRADE) < written.index("apt-get install")
    assert ["update", "install"] == apt.done


def test_an_upgrade_can_be_refused(monkeypatch):
    monkeypatch.setenv(packages.UPGRADES_VARIABLE, "no")
    apt = Apt(monkeypatch, SIMULATED)
    with pytest.raises(packages.PackagesError, match="READYGATE_UPGRADES=no, so nothing was installed"):
        packages.install(["systemd-container"])
    assert ["update"] == apt.done
