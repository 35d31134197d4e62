"""What look.sh tells the play of a host: by files of a pretended one."""

import hashlib
import os
import subprocess
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
