"""The program that keeps the static pod's credentials, with a kubectl that is a script of this test."""

import base64
import json
import os
import stat
import subprocess
import sys
import time

import pytest

from tests.playbooks.rendering import ROLES

PROGRAM = ROLES / "readygate_extender" / "files" / "credentials.py"
KUBECTL = """#!{python}
import json, sys
from pathlib import Path
here = Path({folder!r})
given = sys.argv[1:]
assert given[:2] == ["--kubeconfig", "/admin.conf"], given
with (here / "asked").open("a") as file:
    file.write(" ".join(given[2:]) + "\\n")
if given[2:4] == ["create", "token"]:
    print((here / "next-token").read_text())
elif given[2] == "create":
    token = json.load(sys.stdin)["spec"]["token"]
    taken = token in (here / "taken").read_text().split()
    user = {{"username": "system:serviceaccount:readygate-system:readygate-extender"}}
    print(json.dumps({{"status": {{"authenticated": taken, "user": user}}}}))
elif given[2] == "config":
    print((here / "view").read_text())
elif given[2:4] == ["get", "secret"]:
    print((here / "secret").read_text())
"""


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def token(*, days_ago: float, days: float = 100) -> str:
    issued = int(time.time() - days_ago * 86400)
    claims = {"iat": issued, "exp": int(issued + days * 86400)}
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.s"


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class Host:
    def __init__(self, folder):
        self.folder = folder
        self.files = folder / "credentials"
        self.tls = folder / "tls"
        for made in (self.files, self.tls, folder / "bin"):
            made.mkdir()
        kubectl = folder / "bin" / "kubectl"
        kubectl.write_text(KUBECTL.format(python=sys.executable, folder=str(folder)))
        kubectl.chmod(0o755)
        self.say("view", {"clusters": [{"cluster": {"certificate-authority-data": encoded("authority")}}]})
        self.say("secret", {"data": {name: encoded(name) for name in ("tls.crt", "tls.key", "ca.crt")}})
        self.next = token(days_ago=0)

    def say(self, name, value):
        (self.folder / name).write_text(json.dumps(value))

    def run(self, *arguments, taken=()):
        (self.folder / "taken").write_text(" ".join(taken))
        (self.folder / "next-token").write_text(self.next)
        command = [sys.executable, str(PROGRAM), "--kubeconfig=/admin.conf", f"--folder={self.files}"]
        command += [
            f"--group={os.getgid()}",
            "--namespace=readygate-system",
            "--account=readygate-extender",
            "--days=100",
        ]
        environ = os.environ | {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        done = subprocess.run(
            [*command, *arguments], env=environ, capture_output=True, text=True, timeout=30, check=False
        )
        return done.returncode, json.loads(done.stdout) if done.returncode == 0 else done.stderr

    def content(self, name):
        return (self.files / name).read_text()


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_the_first_time_authority_and_token_are_written_for_root_and_the_extender_alone(host):
    code, said = host.run()
    assert (0, ["ca.crt", "token"]) == (code, said["changed"])
    assert ("authority", f"{host.next}\n") == (host.content("ca.crt"), host.content("token"))
    assert {0o640} == {stat.S_IMODE((host.files / name).stat().st_mode) for name in ("ca.crt", "token")}
    assert "create token readygate-extender --namespace=readygate-system --duration=2400h" in (
        (host.folder / "asked").read_text()
    )
    assert ["ca.crt", "token"] == names(host.files)


@pytest.mark.parametrize(
    ("days_ago", "is_taken", "changed"),
    [
        pytest.param(10, True, [], id="a young one that is taken stays"),
        pytest.param(51, True, ["token"], id="half of its time is over"),
        pytest.param(10, False, ["token"], id="the account was made anew, or the key: it is not taken"),
    ],
)
def test_a_token_is_renewed_in_time(host, days_ago, is_taken, changed):
    present = token(days_ago=days_ago)
    host.run()
    (host.files / "token").write_text(f"{present}\n")
    code, said = host.run(taken=[present] if is_taken else [])
    assert (0, changed) == (code, said["changed"])
    assert (host.next if changed else present) == host.content("token").strip()


@pytest.mark.parametrize(
    ("present_days", "given_days", "changed", "holds_days", "short"),
    [
        pytest.param(None, 100, ["ca.crt", "token"], 100, False, id="as long as it is to"),
        pytest.param(None, 30, ["ca.crt", "token"], 30, True, id="the API server gives none that is longer"),
        pytest.param(30, 30, ["ca.crt"], 30, True, id="nor does it now, so the one that is there stays"),
        pytest.param(30, 100, ["ca.crt", "token"], 100, False, id="now it does"),
        pytest.param(400, 100, ["ca.crt"], 400, False, id="one that holds longer stays"),
    ],
)
def test_a_token_that_holds_for_less_than_was_asked_for_is_told_of(
    host, present_days, given_days, changed, holds_days, short
):
    host.next = token(days_ago=0, days=given_days)
    present = token(days_ago=1, days=present_days) if present_days else ""
    (host.files / "token").write_text(f"{present}\n")
    code, said = host.run(taken=[present])
    assert (0, changed) == (code, said["changed"])
    assert (holds_days * 86400, short) == (said["holds_s"], said["short"])
    assert (host.next if "token" in changed else present) == host.content("token").strip()


def test_check_says_what_would_change_and_changes_nothing(host):
    assert ["ca.crt", "token"] == host.run("--check")[1]["changed"]
    assert [] == names(host.files)
    assert "create token" not in (host.folder / "asked").read_text()


def test_the_secret_for_tls_becomes_files(host):
    given = ("--tls-secret=extender-tls", f"--tls-folder={host.tls}")
    assert ["ca.crt", "token", "ca.crt", "tls.crt", "tls.key"] == host.run(*given)[1]["changed"]
    assert ["ca.crt", "tls.crt", "tls.key"] == names(host.tls)
    host.say("secret", {"data": {"tls.crt": encoded("c")}})
    code, said = host.run(*given)
    assert (1, "Secret extender-tls lacks tls.key, ca.crt\n") == (code, said)


def test_a_kubeconfig_without_an_authority_is_refused(host):
    host.say("view", {"clusters": [{"cluster": {}}]})
    code, said = host.run()
    assert (1, True) == (code, said.startswith("/admin.conf names no certificate authority"))
