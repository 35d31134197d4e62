"""What look.sh tells the play of a host: by files of a pretended one."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.playbooks.rendering import ROLES

LOOK = (ROLES / "readygate_node" / "files" / "look.sh").read_text()
CONFIGURATION = "mode: node\n"
DIGEST = hashlib.sha256(CONFIGURATION.encode()).hexdigest()[:12]
AUTHORITY = hashlib.sha256(b"ca").hexdigest()[:12]


class Host:
    def __init__(self, root: Path) -> None:
        self.folder, self.units, self.kubeconfig = root / "node", root / "units", root / "kubelet.conf"
        self.configuration = self.folder / "configuration" / DIGEST / "agent.yaml"
        for path in (self.configuration.parent, self.folder / "images" / "0123", self.units):
            path.mkdir(parents=True)
        self.configuration.write_text(CONFIGURATION)
        self.authority = root / "ca.crt"
        self.authority.write_text("ca")
        self.kubeconfig.write_text(f"  certificate-authority: {self.authority}\n  server: https://192.0.2.1:6443\n")
        self.install(f"BindReadOnlyPaths={self.configuration.parent}:/etc/readygate")

    def install(self, bound: str) -> None:
        (self.units / "readygate-node.service").write_text(f"# Revision: abc\n{bound}\n")

    def seen(self, authority: str = "", server: str = "", address: str = "", **environment: str) -> dict[str, str]:
        words = [
            "sh",
            "-s",
            str(self.folder),
            "readygate-node.service",
            str(self.kubeconfig),
            authority,
            server,
            address,
        ]
        environment = {**os.environ, "UNITS": str(self.units), **environment}
        run = subprocess.run(words, input=LOOK, env=environment, capture_output=True, text=True, timeout=60, check=True)
        return dict(line.split("=", 1) for line in run.stdout.splitlines())


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_what_is_in_place(host: Host) -> None:
    seen = host.seen()
    assert ("0123 ", "abc", "yes", "no", "https://192.0.2.1:6443") == tuple(
        seen[key] for key in ("images", "revision", "intact", "open", "server")
    )


def test_a_configuration_that_somebody_has_edited_is_not_what_it_is_called(host: Host) -> None:
    host.configuration.write_text("mode: pod\n")
    assert "no" == host.seen()["intact"]


def test_one_of_an_earlier_version_was_bound_as_a_file(host: Host) -> None:
    """Another revision has it put in place anew in any case."""
    host.install(f"BindReadOnlyPaths={host.configuration}:/etc/readygate/agent.yaml")
    assert "no" == host.seen()["intact"]


@pytest.mark.parametrize(
    "kept", [pytest.param("# version", id="a version"), pytest.param("", id="that there was none")]
)
def test_a_change_that_was_interrupted_is_seen_by_what_was_kept_for_it(host: Host, kept: str) -> None:
    (host.folder / "earlier.service").write_text(kept)
    assert "yes" == host.seen()["open"]


def test_the_ca_that_is_to_be_trusted_is_told_by_its_content(host: Host) -> None:
    found = host.seen()
    other = host.folder / "other.crt"
    other.write_text("another")
    said = host.seen(str(other))
    gone = host.seen("/nowhere/ca.crt")
    assert (str(host.authority), AUTHORITY) == (found["authority"], found["authority_digest"])
    assert (hashlib.sha256(b"another").hexdigest()[:12], "") == (said["authority_digest"], gone["authority_digest"])


# Says one line of what it is given each time, the last one again and again.
LINES = """#!/bin/sh
[ "$1" = {wanted} ] || exit 1
echo "$1" >> {file}.asked
head -n 1 {file}
[ "$(wc -l < {file})" = 1 ] || sed -i 1d {file}
"""


@pytest.mark.parametrize(
    ("pids", "unit", "name", "asked"),
    [
        pytest.param(["{pid}"], ["active"], "worker-7", 1, id="it runs"),
        pytest.param(["{pid} 1"], ["active"], "worker-7", 1, id="two are called so: the newest, which is told first"),
        pytest.param(["", "", "{pid}"], ["activating"], "worker-7", 3, id="systemd is about to start it again"),
        pytest.param(["", "{pid}"], ["active"], "worker-7", 2, id="it is being replaced in this moment"),
        pytest.param([""], ["inactive"], os.uname().nodename.lower(), 1, id="it is stopped, or none of systemd's"),
        pytest.param([""], ["active"], os.uname().nodename.lower(), 3, id="its process is called otherwise"),
        pytest.param([""], ["activating"], os.uname().nodename.lower(), 6, id="it never comes up"),
    ],
)
def test_what_a_kubelet_was_started_with_is_read_also_while_it_is_started_anew(
    host: Host, tmp_path: Path, pids: Sequence[str], unit: Sequence[str], name: str, asked: int
) -> None:
    """Else its flags would be missing from one look, and there again in the next: another configuration."""
    programs = tmp_path / "programs"
    programs.mkdir()
    code = "import sys; print(flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", code, "--hostname-override=worker-7"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as kubelet:
        assert kubelet.stdout is not None
        assert kubelet.stdin is not None
        assert kubelet.stdout.readline()
        for program, wanted, lines in (("pidof", "kubelet", pids), ("systemctl", "is-active", unit)):
            file = tmp_path / f"{program}.lines"
            file.write_text("".join(f"{line.format(pid=kubelet.pid)}\n" for line in lines))
            (programs / program).write_text(LINES.format(wanted=wanted, file=file))
            (programs / program).chmod(0o755)
        seen = host.seen(PATH=f"{programs}:{os.environ['PATH']}", PAUSE_S="0")
        kubelet.stdin.close()
    assert (name, asked) == (seen["name"], len((tmp_path / "pidof.lines.asked").read_text().split()))
