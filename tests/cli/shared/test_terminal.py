"""The terminal: colours, redrawn pages, progress, and the lines that a pipe gets."""

import io
import os
import pty
import subprocess
import sys
import time

import pytest

from cli.shared import terminal
from cli.shared.errors import CommandError
from cli.shared.layout import line
from tests.cli.served import Extender
from tests.cli.status.test_status import CLOSED, OPEN
from tools.kit.waiting import wait_until


def in_a_terminal(*arguments, **environ):
    """What a terminal gets to see."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "cli", *arguments]
    with subprocess.Popen(
        command, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm", **environ}
    ) as running:
        os.close(theirs)
        seen, ends = b"", False
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not more:
                break
            seen += more
            if "--watch" in arguments and seen.count(b"nodes open") == 2 and not ends:
                ends = True  # a second signal would meet an interpreter that ends already
                running.terminate()
        running.wait(timeout=100)
    os.close(ours)
    return running.returncode, seen.decode()


@pytest.fixture
def closed(cluster):
    cluster.extenders = [Extender("e-1", nodes={"nodes": [OPEN, CLOSED]})]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({}, True, id="a terminal"),
        pytest.param({"NO_COLOR": "1"}, False, id="NO_COLOR"),
        pytest.param({"TERM": "dumb"}, False, id="a terminal without colours"),
    ],
)
@pytest.mark.usefixtures("closed")
def test_colours_are_shown_only_on_terminals_that_support_them(environ, expected):
    code, seen = in_a_terminal("status", **environ)
    assert (1, expected, True) == (code, "\x1b[31mclosed\x1b[0m" in seen, "closed" in seen)


@pytest.mark.usefixtures("closed")
def test_a_watch_redraws_the_page():
    code, seen = in_a_terminal("status", "--watch")
    assert (0, 2, True) == (code, seen.count(terminal.CLEAR), seen.count("1 of 2 nodes open") == 2)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "expected"), [(Terminal, True), (io.StringIO, False)])
def test_progress_is_shown_on_a_terminal_and_erased(monkeypatch, stream, expected):
    monkeypatch.setattr(sys, "stderr", stream())
    monkeypatch.setattr(terminal, "PROGRESS_AFTER_S", 0.01)
    with terminal.progress("asking"):
        if expected:
            wait_until(lambda: "asking: " in sys.stderr.getvalue(), "progress is shown")
        else:
            time.sleep(0.2)
    told = sys.stderr.getvalue()
    assert (expected, expected) == ("\rasking: " in told, told.endswith("\r\x1b[K"))


def view(key):
    return terminal.View(0, lambda _: [line("page")], f"answer {key}", key, {"key": key}, is_last=key == "last")


@pytest.mark.parametrize(
    ("output", "expected"),
    [("table", ["answer a", "answer last"]), ("json", ['{"key":"a"}', '{"key":"last"}'])],
)
def test_a_watch_goes_on_after_an_error(capsys, output, expected):
    found = iter([view("a"), view("a"), CommandError("gone"), CommandError("gone"), view("last")])

    def look():
        if isinstance(one := next(found), CommandError):
            raise one
        return one

    assert terminal.watch(look, output, every_s=0) == 0
    written = capsys.readouterr()
    lines = written.out.splitlines()
    assert expected == (lines if output == "json" else [part[9:] for part in lines])
    assert written.err == "readygate: gone\n"


def test_an_error_of_the_first_query_ends_a_watch():
    def look():
        raise CommandError("there is none")

    with pytest.raises(CommandError):
        terminal.watch(look, "table", every_s=0)
