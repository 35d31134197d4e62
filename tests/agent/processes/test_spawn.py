"""A program that is started: what it gets of us, by each of the two ways of starting it."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from agent.processes import spawn as room
from agent.processes.spawn import Child, Process, spawn
from tools.kit.waiting import wait_until

SAYS = textwrap.dedent("""
    import os, signal, sys
    ignored = [s.name for s in (signal.SIGPIPE, signal.SIGXFSZ) if signal.getsignal(s) is not signal.SIG_DFL]
    fds = sorted(int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}"))
    print(os.getsid(0) == os.getpid(), ignored, fds, os.readlink("/proc/self/fd/0"), os.getcwd(), os.environ.get("A"))
""")


@pytest.fixture(autouse=True, params=["by the library", "by a fork"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "by a fork":
        monkeypatch.setattr(room, "_library", lambda: None)
    else:
        assert room._library() is not None, "else nothing here is tested"
    return str(request.param)


def said(process: Process) -> tuple[int, bytes, bytes]:
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        return process.wait(), process.stdout.read(), process.stderr.read()


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_what_a_program_gets_of_us(tmp_path: Path, way: str) -> None:
    """Its own session, no signal that the interpreter ignores, no descriptor but the three, nothing to read."""
    inherited = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(inherited, True)  # as a library of others might open one
    try:
        env = {"A": "ä=b", "PATH": ""}
        code, out, err = said(spawn([sys.executable, "-S", "-E", "-c", SAYS], env, str(tmp_path)))
    finally:
        os.close(inherited)
    assert (0, b"") == (code, err), way
    assert f"True ['SIGPIPE', 'SIGXFSZ'] [0, 1, 2] /dev/null {tmp_path} ä=b\n" == out.decode(), way


@pytest.mark.parametrize("own", [True, False], ids=["ours", "another"])
@pytest.mark.parametrize(
    ("word", "folders", "expected"),
    [
        pytest.param("tool", ["none", "bin"], (0, b"found\n", b""), id="a name in the second folder of its PATH"),
        pytest.param("tool", ["none"], errno.ENOENT, id="a name in no folder"),
        pytest.param("bare", ["bin"], errno.ENOEXEC, id="a file of no form that is known: no shell is tried"),
        pytest.param("data", ["bin", "none"], errno.EACCES, id="a file that is no program, which is more than none"),
    ],
)
def test_a_name_is_looked_for_in_the_path_of_its_environment(
    word: str, folders: list[str], expected: object, own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").write_text("#!/bin/sh\necho found\n")
    (tmp_path / "bin" / "tool").chmod(0o755)
    (tmp_path / "bin" / "data").write_text("")
    (tmp_path / "bin" / "bare").write_text("echo found\n")
    (tmp_path / "bin" / "bare").chmod(0o755)
    env = {"PATH": ":".join(str(tmp_path / folder) for folder in folders)}
    if own:
        monkeypatch.setenv("PATH", env["PATH"])
    try:
        found: object = said(spawn([word], None if own else env, None))
    except OSError as e:
        found = e.errno
    assert expected == found


@pytest.mark.parametrize(
    ("command", "env", "cwd", "expected"),
    [
        pytest.param(["/no/such"], None, None, "/no/such", id="no such program"),
        pytest.param(["/bin/true"], None, "/no/such/folder", "/no/such/folder", id="no such folder"),
        pytest.param(["a\0b"], None, None, "embedded null byte", id="a null byte in a word"),
        pytest.param(["/bin/true"], {"A": "a\0b"}, None, "embedded null byte", id="a null byte in the environment"),
        pytest.param(["/bin/true"], {"A=B": ""}, None, "illegal environment variable name", id="a name that is none"),
    ],
)
def test_what_cannot_be_started_says_why_and_leaves_no_descriptor(
    command: list[str], env: dict[str, str] | None, cwd: str | None, expected: str
) -> None:
    before = descriptors()
    with pytest.raises((OSError, ValueError)) as caught:
        spawn(command, env, cwd)
    assert expected == (caught.value.filename if isinstance(caught.value, OSError) else str(caught.value))
    wait_until(lambda: descriptors() <= before)


def test_how_it_ended_is_taken_once() -> None:
    process = spawn(["/bin/sh", "-c", "read line; exit 3"], None, None)
    assert (3, b"", b"") == said(process)
    assert (3, 3, 3) == (process.poll(), process.wait(), process.returncode)


def test_one_that_a_signal_ends_is_negative() -> None:
    process = spawn(["/bin/sleep", "60"], None, None)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    assert (-9, b"", b"") == said(process)


def test_one_that_somebody_else_reaped_counts_as_ended() -> None:
    process = spawn(["/bin/true"], None, None)
    os.waitpid(process.pid, 0)
    assert (0, b"", b"") == said(process)


@pytest.mark.parametrize("closed", [(0,), (1, 2), (0, 1, 2)], ids=str)
def test_where_our_own_standard_descriptors_are_closed(closed: tuple[int, ...], tmp_path: Path, way: str) -> None:
    script = textwrap.dedent(f"""
        import os, pathlib
        for fd in {closed}:
            os.close(fd)
        from agent.processes import spawn as room
        if {way == "by a fork"}:
            room._library = lambda: None
        process = room.spawn(["/bin/sh", "-c", "echo out; echo err >&2; cat"], None, None)
        said = process.stdout.read(), process.stderr.read(), process.wait()
        pathlib.Path({str(tmp_path / "said")!r}).write_text(str(said))
    """)
    subprocess.run([sys.executable, "-c", script], check=True, timeout=100, stdin=subprocess.DEVNULL)
    assert "(b'out\\n', b'err\\n', 0)" == (tmp_path / "said").read_text()


def test_the_library_is_used_where_it_can(way: str) -> None:
    process = spawn(["/bin/true"], None, None)
    assert (way == "by the library") == isinstance(process, Child)
    said(process)


@pytest.mark.parametrize("env", [None, {"A": "1"}], ids=["our own environment", "another one"])
def test_a_mark_is_added_to_the_environment(env: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "1")
    monkeypatch.setenv("GONE", "1")
    monkeypatch.delenv("GONE")
    script = 'echo "$A $MARK ${GONE-none}"'
    assert (0, b"1 7 none\n", b"") == said(spawn(["/bin/sh", "-c", script], env, None, "MARK=7"))
