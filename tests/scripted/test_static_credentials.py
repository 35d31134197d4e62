"""The program that keeps the static pod's credentials, with a kubectl that is a script of this test."""

import base64
import errno
import fcntl
import importlib.util
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.playbooks.rendering import ROLES

PROGRAM = ROLES / "readygate_extender" / "files" / "credentials.py"
HOURS = 24
HOUR_S = 3600
KUBECTL = """#!{python}
import json, os, sys, time
from pathlib import Path
here = Path({folder!r})
given = sys.argv[1:]
assert given[0] == "--kubeconfig" and given[2] == "--request-timeout=20s", given
command = given[3:]
with (here / "calls").open("a") as file:
    file.write(" ".join(command) + "\\n")
if (here / "stalls").exists():
    time.sleep(60)
if (here / "fails").exists():
    sys.stderr.write((here / "fails").read_text())
    sys.exit(1)
os.mkdir(here / "busy")  # fails where two ask at once
time.sleep(0.05)
if command[:2] == ["create", "token"]:
    print((here / "next-token").read_text())
elif command[0] == "create":
    token = json.load(sys.stdin)["spec"]["token"]
    accepted = token in (here / "accepted").read_text().split()
    user = {{"username": "system:serviceaccount:readygate-system:readygate-extender"}}
    print(json.dumps({{"status": {{"authenticated": accepted, "user": user}}}}))
elif command[0] == "config":
    print((here / "view").read_text())
elif command[:2] == ["get", "secret"]:
    print((here / "secret").read_text())
os.rmdir(here / "busy")
"""
# Ends the program in front of the nth line that it executes of the function that writes files.
KILLED = """
import os, signal, sys
program, moment, arguments = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
code = compile(open(program).read(), program, "exec")
lines = 0
def trace(frame, event, argument):
    global lines
    if frame.f_code.co_name != "put":
        return None if frame.f_code.co_filename != program else trace
    if event == "line":
        lines += 1
        if lines == moment:
            os.kill(os.getpid(), signal.SIGKILL)
    return trace
sys.argv = [program, *arguments]
sys.settrace(trace)
exec(code, {"__name__": "__main__", "__doc__": "killed"})
"""


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def token(*, hours_ago: float, hours: float = HOURS) -> str:
    issued = int(time.time() - hours_ago * HOUR_S)
    return stating({"iat": issued, "exp": int(issued + hours * HOUR_S)})


def stating(claims: object) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.s"


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class Host:
    def __init__(self, folder):
        self.folder = folder
        self.files = folder / "credentials"
        self.tls = folder / "tls"
        self.kubeconfig = folder / "admin.conf"
        for made in (self.files, self.tls, folder / "bin"):
            made.mkdir()
        kubectl = folder / "bin" / "kubectl"
        kubectl.write_text(KUBECTL.format(python=sys.executable, folder=str(folder)))
        kubectl.chmod(0o755)
        self.kubeconfig.touch()
        self.answer("view", {"clusters": [{"cluster": {"certificate-authority-data": encoded("authority")}}]})
        self.answer("secret", {"data": {name: encoded(name) for name in ("tls.crt", "tls.key", "ca.crt")}})
        self.next = token(hours_ago=0)

    def answer(self, name, value):
        (self.folder / name).write_text(json.dumps(value))

    def has(self, present):
        """A token, after a first run."""
        self.run()
        (self.files / "token").write_text(f"{present}\n")
        (self.folder / "calls").unlink()

    def arguments(self, *more, accepted=()):
        (self.folder / "accepted").write_text(" ".join(accepted))
        (self.folder / "next-token").write_text(self.next)
        return [
            f"--kubeconfig={self.kubeconfig}",
            f"--folder={self.files}",
            f"--group={os.getgid()}",
            "--namespace=readygate-system",
            "--account=readygate-extender",
            f"--hours={HOURS}",
            *more,
        ]

    @property
    def environ(self):
        return os.environ | {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}

    def start(self, *more, accepted=(), program=(str(PROGRAM),)):
        return subprocess.Popen(
            [sys.executable, *program, *self.arguments(*more, accepted=accepted)],
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *more, accepted=()):
        process = self.start(*more, accepted=accepted)
        output, errors = process.communicate(timeout=30)
        return process.returncode, json.loads(output)["changed"] if process.returncode == 0 else errors

    def calls(self):
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def content(self, name):
        return (self.files / name).read_text()


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


@pytest.fixture
def program(host, monkeypatch):
    """The program as a module of this process, so that a test can change its parts."""
    spec = importlib.util.spec_from_file_location("credentials", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("PATH", host.environ["PATH"])
    return module


def test_a_first_run_writes_authority_and_token_for_root_and_the_extender_alone(host):
    assert (0, ["token", "ca.crt"]) == host.run()
    assert ("authority", f"{host.next}\n") == (host.content("ca.crt"), host.content("token"))
    assert {0o640} == {stat.S_IMODE((host.files / name).stat().st_mode) for name in ("ca.crt", "token")}
    assert "create token readygate-extender --namespace=readygate-system --duration=24h" in host.calls()
    assert ["ca.crt", "token"] == names(host.files)


# Made when the test runs: a session may be longer than a token is young.
DUE = [
    pytest.param(lambda: token(hours_ago=7), id="a quarter of its life is over"),
    pytest.param(lambda: token(hours_ago=0.3, hours=1), id="a quarter of the hour that the API server gave is over"),
    pytest.param(lambda: token(hours_ago=30), id="it has ended"),
    pytest.param(lambda: token(hours_ago=-1), id="it was issued in the future, so the clock was set back"),
    pytest.param(lambda: token(hours_ago=1, hours=365 * 24), id="it lives for a year, as those of an earlier role"),
    pytest.param(lambda: stating({"iat": 1}), id="it does not state when it ends"),
    pytest.param(lambda: stating({"iat": 1, "exp": "x" * 9}), id="its end is no number"),
    pytest.param(lambda: stating([]), id="it states nothing"),
    pytest.param(lambda: token(hours_ago=1)[:20], id="it is half a token"),
    pytest.param(lambda: "", id="there is none"),
]
YOUNG = [
    pytest.param(lambda: token(hours_ago=5), id="less than a quarter of its life is over"),
    pytest.param(lambda: token(hours_ago=0.2, hours=1), id="so it is with the hour that the API server gave"),
    pytest.param(lambda: token(hours_ago=-0.01), id="the API server's clock is half a minute ahead"),
]


@pytest.mark.parametrize("more", [pytest.param((), id="play"), pytest.param(("--when-due",), id="timer")])
@pytest.mark.parametrize("make", DUE)
def test_a_token_that_is_due_is_renewed(host, make, more):
    host.has(present := make())
    assert (0, ["token"]) == host.run(*more, accepted=[present])
    assert host.next == host.content("token").strip()


@pytest.mark.parametrize("make", YOUNG)
def test_a_young_token_stays_and_the_timer_does_not_ask_the_api_server(host, make):
    host.has(present := make())
    assert (0, []) == host.run("--when-due")
    assert [] == host.calls()
    assert (0, []) == host.run(accepted=[present])
    assert present == host.content("token").strip()


def test_a_play_replaces_a_young_token_that_the_api_server_does_not_accept(host):
    """Its account was made again, or the API server signs with another key."""
    host.has(token(hours_ago=1))
    assert (0, ["token"]) == host.run(accepted=[])
    assert host.next == host.content("token").strip()


def test_the_next_renewal_follows_the_life_that_the_api_server_gave_and_not_the_one_asked_for(host):
    host.next = token(hours_ago=0.1, hours=1)
    assert (0, ["token", "ca.crt"]) == host.run()
    assert (0, []) == host.run("--when-due"), "six minutes of an hour are over"
    host.next, earlier = token(hours_ago=0), token(hours_ago=0.26, hours=1)
    (host.files / "token").write_text(earlier)
    assert (0, ["token"]) == host.run("--when-due"), "a quarter of an hour"


def test_a_renewal_is_one_line_for_the_journal_that_does_not_show_the_token(host):
    issued = 1_800_000_000  # 2027-01-15T08:00:00Z
    host.next = stating({"iat": issued, "exp": issued + 8 * HOUR_S})
    process = host.start("--when-due")
    (line,) = process.communicate(timeout=30)[1].splitlines()
    assert line == (
        "the extender's API token was renewed: it ends at 2027-01-15T16:00:00Z,"
        " the next renewal is due at 2027-01-15T10:00:00Z"
    )


FAILS = [
    pytest.param(
        "error: You must be logged in to the server (Unauthorized)",
        "renew it (kubeadm certs renew admin.conf)",
        id="the kubeconfig's certificate has ended",
    ),
    pytest.param(
        'Error from server (Forbidden): serviceaccounts "readygate-extender" is forbidden: User "u" cannot create',
        "name the kubeconfig of an administrator in readygate_extender_kubeconfig",
        id="the kubeconfig's user lacks the right",
    ),
    pytest.param(
        'error: failed to create token: serviceaccounts "readygate-extender" not found', "run site.yml", id="no account"
    ),
    pytest.param("The connection to the server 192.0.2.11 was refused", "was refused", id="the API server is away"),
    pytest.param("\x1b[2J<html>\n\x00" + "x" * 100_000, "?[2J<html> ?xxx", id="what answers is no API server"),
    pytest.param("", "kubectl create token: ", id="it ends without a word"),
]


@pytest.mark.parametrize(("error", "expected"), FAILS)
def test_a_failure_leaves_the_token_and_is_one_line_with_cause_and_remedy(host, error, expected):
    present = token(hours_ago=7)
    host.has(present)
    (host.folder / "fails").write_text(error)
    code, text = host.run("--when-due")
    assert (1, 1, True) == (code, text.count("\n"), text.rstrip("\n").isprintable())
    assert expected in text
    assert len(text) < 600
    assert present not in text
    assert f"{present}\n" == host.content("token")


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("", id="nothing"),
        pytest.param("error: none", id="words"),
        pytest.param(f"{token(hours_ago=0)}\n{token(hours_ago=0)}", id="two tokens"),
        pytest.param(token(hours_ago=0) + "\x00", id="a token and more"),
        pytest.param(stating({"iat": 1}), id="a token that does not state its end"),
    ],
)
def test_what_is_no_token_is_not_written(host, given):
    present = token(hours_ago=7)
    host.has(present)
    host.next = given
    code, text = host.run("--when-due")
    assert (1, True) == (code, "no token that states when it ends" in text)
    assert f"{present}\n" == host.content("token")


def test_a_missing_kubeconfig_is_reported_with_its_remedy(host):
    host.has(token(hours_ago=7))
    host.kubeconfig.unlink()
    code, text = host.run("--when-due")
    assert (1, f"{host.kubeconfig} is missing: write it again") == (code, text.partition(" (")[0])


def test_a_stalled_api_server_costs_a_bounded_time_and_leaves_the_token(host, program, monkeypatch, capsys):
    present = token(hours_ago=7)
    host.has(present)
    (host.folder / "stalls").touch()
    monkeypatch.setattr(program, "KUBECTL_LIMIT_S", 0.5)
    assert 1 == program.main(host.arguments("--when-due"))
    assert capsys.readouterr().err == "kubectl create: no answer within 0.5 s\n"
    assert f"{present}\n" == host.content("token")


@pytest.mark.parametrize("fails", ["open", "fsync", "fchown"])
def test_a_full_disk_leaves_the_token_and_no_half_file(host, program, monkeypatch, capsys, fails):
    present = token(hours_ago=7)
    host.has(present)
    real = getattr(os, fails)

    def full(first, *more):
        if fails == "open" and not str(first).endswith(".new"):
            return real(first, *more)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "token.new")

    monkeypatch.setattr(program.os, fails, full)
    assert 1 == program.main(host.arguments("--when-due"))
    monkeypatch.undo()
    assert "No space left on device" in capsys.readouterr().err
    assert f"{present}\n" == host.content("token")
    assert ["ca.crt", "token"] == names(host.files)


def test_a_kill_at_any_moment_leaves_the_old_token_or_the_new_one_and_the_next_run_goes_on(host, tmp_path):
    killed_at = tmp_path / "killed.py"
    killed_at.write_text(KILLED)
    present = token(hours_ago=7)
    host.has(present)
    seen = set()
    for moment in range(1, 100):
        (host.files / "token").write_text(f"{present}\n")
        process = host.start("--when-due", program=(str(killed_at), str(PROGRAM), str(moment)))
        process.communicate(timeout=30)
        content = host.content("token")
        assert content in (f"{present}\n", f"{host.next}\n"), moment
        seen.add(content)
        assert (0, host.next) == (host.run("--when-due")[0], host.content("token").strip()), moment
        assert ["ca.crt", "token"] == names(host.files), moment
        if process.returncode != -signal.SIGKILL:
            break
    assert (0, 2) == (process.returncode, len(seen)), "it was killed before and after the rename, and ended once"
    assert moment > 10


def test_two_runs_at_once_ask_for_one_token(host):
    """A play and the timer. The fake kubectl fails where two ask at the same time."""
    host.has(token(hours_ago=7))
    both = [host.start("--when-due", accepted=[host.next]), host.start(accepted=[host.next])]
    assert [0, 0] == [process.wait(timeout=30) for process in both]
    for process in both:
        process.communicate()
    assert 1 == len([call for call in host.calls() if call.startswith("create token")])


def test_the_lock_is_out_of_the_extenders_reach(host):
    """The pod mounts the folder of the credentials, so it could lock that for ever."""
    host.has(token(hours_ago=7))
    descriptor = os.open(host.files, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert (0, ["token"]) == host.run("--when-due")
    finally:
        os.close(descriptor)


def test_the_secret_for_tls_becomes_files(host):
    given = ("--tls-secret=extender-tls", f"--tls-folder={host.tls}")
    assert (0, ["token", "ca.crt", "ca.crt", "tls.crt", "tls.key"]) == host.run(*given)
    assert ["ca.crt", "tls.crt", "tls.key"] == names(host.tls)
    host.answer("secret", {"data": {"tls.crt": encoded("c")}})
    code, text = host.run(*given, accepted=[host.next])
    assert (1, "Secret extender-tls lacks tls.key, ca.crt\n") == (code, text)


def test_a_kubeconfig_without_an_authority_is_refused_and_the_token_is_renewed_all_the_same(host):
    host.has(token(hours_ago=7))
    host.answer("view", {"clusters": [{"cluster": {}}]})
    code, text = host.run("--when-due")
    assert (1, True) == (code, f"{host.kubeconfig} names no certificate authority" in text)
    assert host.next == host.content("token").strip()


@pytest.mark.parametrize("name", ["view", "secret"])
def test_an_answer_of_another_shape_is_an_error_in_one_line(host, name):
    host.has(host.next)
    (host.folder / name).write_text("[]")
    given = ("--tls-secret=extender-tls", f"--tls-folder={host.tls}")
    code, text = host.run(*given, accepted=[host.next])
    assert (1, True, 1) == (code, text.startswith("what kubectl printed cannot be used: "), text.count("\n"))
    assert Path(host.files / "token").exists()
