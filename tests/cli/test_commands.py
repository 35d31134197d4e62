"""The commands as processes: exit codes, standard output, standard error."""

import json
import os
import signal
import subprocess
import sys

import pytest

from cli.__main__ import main
from tests.cli.served import HEAD, OPEN, serving
from tools.kit import kubeconfig


class Server:
    """An extender that gives the same answer to every request."""

    answer = b""
    url = ""


@pytest.fixture
def server():
    found = Server()
    with serving(lambda *_: (200, found.answer)) as found.url:
        yield found


def piped(server, shell_words, **environ):
    """Runs the command in a shell. shell_words: the redirection of its output."""
    command = f"{sys.executable} -m cli status --server {server.url} -a {shell_words}"
    done = subprocess.run(command, shell=True, env=os.environ | environ, capture_output=True, timeout=100, check=False)  # noqa: S602
    return done.returncode, done.stdout, done.stderr


def test_a_full_disk_is_one_line(server):
    server.answer = json.dumps({**HEAD, "nodes": [OPEN]}).encode()
    code, _, err = piped(server, "> /dev/full")
    assert (code, err) == (
        1,
        b"readygate: cannot write to standard output: No space left on device; free disk space, or write elsewhere\n",
    )


def test_a_closed_pipe_is_no_error(server):
    server.answer = json.dumps({**HEAD, "nodes": [OPEN] * 5000}).encode()
    assert piped(server, "| head -1")[::2] == (0, b"")


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "1>&- 2>&-"])
def test_a_closed_stream_keeps_the_exit_code(server, closed):
    """A script may want only the exit code."""
    server.answer = json.dumps({**HEAD, "notAnswering": "stale", "nodes": [OPEN]}).encode()
    code, out, err = piped(server, closed)
    assert (3, b"", "1>" in closed) == (code, err, not out)


def test_an_ascii_terminal_gets_replacement_characters(server):
    server.answer = json.dumps(
        {**HEAD, "nodes": [OPEN | {"open": False, "reason": "r", "evidence": "Fehler: \u00fc"}]}
    ).encode()
    code, out, err = piped(server, "", PYTHONIOENCODING="ascii")
    assert (code, b"Fehler: ?" in out, err) == (1, True, b"")


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        pytest.param("listen: {port: 1}", 0, "extender.yaml: ok\n", id="a good file"),
        pytest.param("listen: {prot: 1}", 2, "extender.yaml: listen.prot: unknown key, allowed: ", id="a bad one"),
        pytest.param("cap: {gate: 101%}", 2, 'extender.yaml: cap.gate: is the text "101%", allowed: ', id="a bad cap"),
    ],
)
def test_lint_accepts_valid_files_and_names_errors(tmp_path, capsys, text, code, expected):
    path = tmp_path / "extender.yaml"
    path.write_text(text)
    assert main(["lint", str(path)]) == code
    written = capsys.readouterr()
    assert expected in written.out + written.err
    assert (written.out == "") == bool(code)


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["status", "-o", "xml"], ["lint"]])
def test_wrong_usage_exits_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert (caught.value.code, "usage: readygate" in capsys.readouterr().err) == (2, True)


def test_help_lists_the_exit_codes(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "3    unknown" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["status"])
def test_help_of_a_command_lists_its_exit_codes(capsys, command):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "exit codes:\n  0    " in capsys.readouterr().out


def test_the_kubectl_plugin_shows_its_own_name(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["/usr/bin/kubectl-readygate"])
    with pytest.raises(SystemExit):
        main(["--help"])
    assert capsys.readouterr().out.startswith("usage: kubectl readygate ")


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_watch_writes_changes_and_ends_cleanly(server, stop, code):
    server.answer = json.dumps({**HEAD, "nodes": [OPEN]}).encode()
    command = [sys.executable, "-m", "cli", "status", "--watch", "--server", server.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watching:
        first = watching.stdout.readline()
        server.answer = json.dumps({**HEAD, "nodes": [OPEN | {"open": False, "reason": "r"}]}).encode()
        second = watching.stdout.readline()
        watching.send_signal(stop)
        out, err = watching.communicate(timeout=100)
    assert (b"1 of 1 nodes open", b"0 of 1 nodes open; closed: node-1") == (first[9:].strip(), second[9:].strip())
    assert (code, b"", b"") == (watching.returncode, out, err)


@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["why", "pod", "a/b"],
        ["why", "node", "n"],
        ["history"],
        ["impact"],
        ["hold", "--node", "n"],
        ["exempt"],
        ["pause"],
        ["arm"],
        ["disarm"],
        ["lift", "a"],
        ["orders"],
        ["doctor"],
        ["record", "new.recording"],
        ["unregistered", "a/b"],
        ["sweep"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("server", ["", "http://127.0.0.1:1"], ids=["no kubeconfig", "an API server that is not there"])
def test_every_exit_code_is_listed_by_help(capsys, monkeypatch, tmp_path, command, server):
    monkeypatch.chdir(tmp_path)
    if server:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig.write(tmp_path / "k", server=server)))
    code = main(command)
    capsys.readouterr()
    words = command[:2] if command[0] == "why" else command[:1]
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    told = capsys.readouterr().out.partition("exit codes:")[2]
    assert str(code) in [line.split()[0] for line in told.splitlines() if line.strip()]
