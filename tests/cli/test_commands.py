"""The commands as a person runs them: exit code, standard output, standard error."""

import http.server
import json
import os
import subprocess
import sys
import threading

import pytest

from cli.__main__ import main
from cli.status import age

OPEN = {
    "node": "node-1",
    "open": True,
    "reason": "",
    "sinceSeconds": 61.5,
    "pod": "readygate-system/agent-1",
    "evidence": "",
    "heartbeatAgeSeconds": 1.5,
}
CLOSED = {
    "node": "node-2",
    "open": False,
    "reason": "node(s) reported unhealthy",
    "sinceSeconds": 7300.0,
    "pod": "readygate-system/agent-2",
    "evidence": "CheckFailed: cni:\n\x1b[31mno configuration",
    "heartbeatAgeSeconds": None,
}


class Extender(http.server.BaseHTTPRequestHandler):
    answer = b""
    status = 200

    def do_GET(self):
        body = self.answer if self.path == "/api/v1/nodes" else b""
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Quiet."""


@pytest.fixture
def server():
    """A server that answers what is put into its `answer`."""
    handler = type("Handler", (Extender,), {})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        handler.url = f"http://127.0.0.1:{running.server_address[1]}"
        yield handler
        running.shutdown()
        thread.join()


def status(capsys, server, *arguments):
    code = main(["status", "--server", server.url, *arguments])
    written = capsys.readouterr()
    return code, written.out, written.err


def test_all_open(capsys, server):
    server.answer = json.dumps({"notAnswering": "", "nodes": [OPEN]}).encode()
    expected = """\
NODE    OPEN  SINCE  REASON  HEALTH POD                EVIDENCE
node-1  yes   61s            readygate-system/agent-1

1 of 1 nodes open
"""
    assert status(capsys, server) == (0, expected, "")


def test_a_closed_node_comes_first_with_its_evidence_in_one_printable_line(capsys, server):
    server.answer = json.dumps({"notAnswering": "", "nodes": [OPEN, CLOSED]}).encode()
    code, out, _ = status(capsys, server)
    assert (code, out.splitlines()[1].split()[0], out.splitlines()[-1]) == (1, "node-2", "1 of 2 nodes open")
    assert "CheckFailed: cni: [31mno configuration" in out
    assert "\x1b" not in out


def test_json_is_the_report_itself(capsys, server):
    report = {"notAnswering": "", "nodes": [OPEN, CLOSED], "later": "keys of later releases stay"}
    server.answer = json.dumps(report).encode()
    code, out, _ = status(capsys, server, "-o", "json")
    assert (code, json.loads(out)) == (1, report)


def test_an_extender_that_gives_no_verdicts(capsys, server):
    server.answer = json.dumps({"notAnswering": "readygate: cache not synced", "nodes": []}).encode()
    code, _, err = status(capsys, server)
    assert (code, err) == (1, "extender is not answering with verdicts: readygate: cache not synced\n")


@pytest.mark.parametrize(
    ("answer", "code", "expected"),
    [
        pytest.param(b"<html>", 200, "gives no report", id="another server"),
        pytest.param(b'{"nodes": 1}', 200, "gives no report", id="another shape"),
        pytest.param(b'{"notAnswering":"\xff","nodes":[]}', 200, "gives no report", id="no UTF-8"),
        pytest.param(b'{"nodes":' + b"[" * 100_000, 200, "gives no report", id="deep"),
        pytest.param(b"", 404, "is it kube-scheduler's port? Give that of readygate-people", id="no such path"),
        pytest.param(b"", 302, "answers 302", id="a redirect is not followed"),
    ],
)
def test_what_is_not_an_extender(capsys, server, answer, code, expected):
    server.answer, server.status = answer, code
    exit_code, out, err = status(capsys, server)
    assert (exit_code, out, expected in err) == (1, "", True)
    assert len(err.splitlines()) == 1


def piped(server, shell_words, **environ):
    """The command in a shell, its standard output as `shell_words` say."""
    command = f"{sys.executable} -m cli status --server {server.url} {shell_words}"
    done = subprocess.run(command, shell=True, env=os.environ | environ, capture_output=True, timeout=20, check=False)  # noqa: S602
    return done.returncode, done.stdout, done.stderr


def test_a_full_disk_is_one_line(server):
    server.answer = json.dumps({"notAnswering": "", "nodes": [OPEN]}).encode()
    code, _, err = piped(server, "> /dev/full")
    assert (code, err) == (
        1,
        b"readygate: cannot write to standard output: No space left on device; give it room\n",
    )


def test_a_reader_that_has_had_enough_is_no_error(server):
    server.answer = json.dumps({"notAnswering": "", "nodes": [OPEN] * 5000}).encode()
    assert piped(server, "| head -1")[::2] == (0, b"")


def test_a_terminal_that_knows_only_ascii(server):
    server.answer = json.dumps({"notAnswering": "", "nodes": [OPEN | {"evidence": "Fehler: \u00fc"}]}).encode()
    code, out, err = piped(server, "", PYTHONIOENCODING="ascii")
    assert (code, b"Fehler: ?" in out, err) == (0, True, b"")


@pytest.mark.parametrize(
    ("url", "code", "expected"),
    [
        pytest.param("http://127.0.0.1:1", 1, "nothing answers at http://127.0.0.1:1: ", id="nobody listens"),
        pytest.param("127.0.0.1:9377", 2, "is no URL", id="no scheme"),
        pytest.param("http://", 2, "is no URL", id="no host"),
        pytest.param("http://127.0.0.1:x", 2, "is no URL", id="no port"),
    ],
)
def test_an_address_that_does_not_answer(capsys, url, code, expected):
    assert main(["status", "--server", url]) == code
    err = capsys.readouterr().err
    assert (expected in err, len(err.splitlines())) == (True, 1)


@pytest.mark.parametrize(
    ("verbs", "expected"),
    [
        pytest.param(True, "does answer, so start readygate-people beside it", id="kube-scheduler is answered"),
        pytest.param(False, "is readygate-people running, and is this one of its hosts?", id="nothing runs here"),
    ],
)
def test_nobody_listens_where_people_are_served_by_default(capsys, monkeypatch, server, verbs, expected):
    monkeypatch.setattr("cli.status.DEFAULT_SERVER", "http://127.0.0.1:1")
    monkeypatch.setattr("cli.status.VERBS_SERVER", server.url if verbs else "http://127.0.0.1:1")
    assert main(["status", "--server", "http://127.0.0.1:1"]) == 1
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        pytest.param("listen: {port: 1}", 0, "extender.yaml: ok\n", id="a good file"),
        pytest.param("listen: {prot: 1}", 2, "extender.yaml: listen.prot: unknown key, allowed: ", id="a bad one"),
    ],
)
def test_lint(tmp_path, capsys, text, code, expected):
    path = tmp_path / "extender.yaml"
    path.write_text(text)
    assert main(["lint", str(path)]) == code
    written = capsys.readouterr()
    assert expected in written.out + written.err
    assert (written.out == "") == bool(code)


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["status", "-o", "xml"], ["lint"]])
def test_wrong_usage(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert (caught.value.code, "usage: readygate" in capsys.readouterr().err) == (2, True)


def test_help_tells_the_exit_codes(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "1    a node is closed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.9, "0s"), (119.9, "119s"), (120, "2m"), (7200, "2h"), (172_800, "2d")]
)
def test_age(seconds, expected):
    assert expected == age(seconds)
