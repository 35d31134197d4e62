"""Starts a program without a copy of this process, and without keeping the interpreter while its file is read.

A fork copies the tables of all our memory, and the first writes after it copy pages: more than the rest of a check that
runs a small command. `posix_spawn` copies nothing. Python's own call of it keeps the interpreter's lock until the
program's file has been read, which takes for ever on a dead server; called by ctypes only the calling thread waits.
Where the C library lacks a part of it (before glibc 2.34, musl) `subprocess` forks.
"""

import ctypes
import errno
import fcntl
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, Protocol, Self, cast

_SETSIGDEF, _SETSID = 0x04, 0x80
_OPAQUE_BYTES = 1024  # more than any library's posix_spawnattr_t, posix_spawn_file_actions_t and sigset_t
_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)  # the interpreter ignores them, and what is ignored stays so in a child
_FIRST_FD = 3
_NOT_HERE = (errno.ENOENT, errno.ENOTDIR)

# With vfork the interpreter itself would stand still until the command's file is read: for ever, on a dead server.
subprocess._USE_VFORK = False  # type: ignore[misc] # noqa: SLF001 - the switch that its documentation names


class Process(Protocol):
    """A program that was started. `stdout` and `stderr` are our ends of its pipes; `returncode` is negative where a
    signal ended it."""

    pid: int
    returncode: Any  # None before it was waited for

    @property
    def stdout(self) -> IO[bytes] | None: ...
    @property
    def stderr(self) -> IO[bytes] | None: ...
    def poll(self) -> int | None: ...
    def wait(self) -> int: ...


class Child:
    """A Process that posix_spawn has started."""

    def __init__(self, pid: int, stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._reaping = threading.Lock()  # a pid that was reaped may be a stranger's

    def poll(self) -> int | None:
        with self._reaping:
            if self.returncode is None:
                self._reap(os.WNOHANG)
            return self.returncode

    def wait(self) -> int:
        with self._reaping:
            if self.returncode is None:
                self._reap(0)
            return self.returncode or 0

    def _reap(self, options: int) -> None:
        try:
            pid, status = os.waitpid(self.pid, options)
        except ChildProcessError:  # somebody else has taken how it ended
            self.returncode = 0
            return
        if pid:
            self.returncode = os.waitstatus_to_exitcode(status)


def spawn(command: Sequence[str], env: Mapping[str, str] | None, cwd: str | None, mark: str = "") -> Process:
    """Starts it as leader of a session of its own, without input, its output into two pipes. `env` None: our own.
    `mark`: NAME=VALUE that is added to it.

    Returns when the program's file has been read. Raises OSError, with the folder as `filename` where that was the
    problem, and ValueError for a text that no program can be given.
    """
    library = _library()
    if library is None:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**(os.environ if env is None else env), **dict([mark.split("=")] if mark else ())},
            cwd=cwd,
            start_new_session=True,
            bufsize=0,
        )
    entries = library.own_entries() if env is None else _entries(env)
    if mark:
        entries.append(mark.encode())
    return _spawned(library, command, entries, cwd, env)


class _Library:
    """The calls of the C library, and the attributes that all our programs are started with."""

    def __init__(self) -> None:
        """Raises OSError, AttributeError for a library that lacks one."""
        library = ctypes.CDLL(None)
        opaque, number, path = ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p
        self.actions_init = _call(library, "posix_spawn_file_actions_init", opaque)
        self.actions_destroy = _call(library, "posix_spawn_file_actions_destroy", opaque)
        self.add_open = _call(library, "posix_spawn_file_actions_addopen", opaque, number, path, number, ctypes.c_uint)
        self.add_dup2 = _call(library, "posix_spawn_file_actions_adddup2", opaque, number, number)
        self.add_chdir = _call(library, "posix_spawn_file_actions_addchdir_np", opaque, path)
        self.add_closefrom = _call(library, "posix_spawn_file_actions_addclosefrom_np", opaque, number)
        texts = ctypes.POINTER(ctypes.c_char_p)
        pid = ctypes.POINTER(ctypes.c_int)
        self.posix_spawn = _call(library, "posix_spawn", pid, path, opaque, opaque, texts, texts)
        self.posix_spawnp = _call(library, "posix_spawnp", pid, path, opaque, opaque, texts, texts)
        self._environ: Any = texts.in_dll(library, "environ")
        self.attributes = ctypes.create_string_buffer(_OPAQUE_BYTES)
        signals = ctypes.create_string_buffer(_OPAQUE_BYTES)
        _call(library, "sigemptyset", opaque)(signals)
        for restored in _RESTORED:
            _call(library, "sigaddset", opaque, number)(signals, restored)
        _call(library, "posix_spawnattr_init", opaque)(self.attributes)
        _call(library, "posix_spawnattr_setsigdefault", opaque, opaque)(self.attributes, signals)
        _call(library, "posix_spawnattr_setflags", opaque, ctypes.c_short)(self.attributes, _SETSIGDEF | _SETSID)

    def own_entries(self) -> list[bytes]:
        """NAME=VALUE of our own environment, as the library has them: Python would decode and encode each."""
        entries: list[bytes] = []
        while (entry := self._environ[len(entries)]) is not None:
            entries.append(entry)
        return entries


def _call(library: ctypes.CDLL, name: str, *types: type) -> Callable[..., int]:
    call = getattr(library, name)
    call.argtypes = types
    call.restype = ctypes.c_int
    return cast("Callable[..., int]", call)


@cache
def _library() -> _Library | None:
    try:
        return _Library()
    except (OSError, AttributeError):
        return None


def _spawned(
    library: _Library, command: Sequence[str], entries: list[bytes], cwd: str | None, env: Mapping[str, str] | None
) -> Child:
    """`env`: whose PATH counts."""
    words = [_text(word) for word in command]
    folder = None if cwd is None else _text(cwd)
    pid = ctypes.c_int()
    actions = ctypes.create_string_buffer(_OPAQUE_BYTES)
    with _Pipe() as stdout, _Pipe() as stderr:
        library.actions_init(actions)
        try:
            library.add_open(actions, 0, b"/dev/null", os.O_RDONLY, 0)
            library.add_dup2(actions, stdout.write, 1)
            library.add_dup2(actions, stderr.write, 2)
            if folder is not None:
                library.add_chdir(actions, folder)
            library.add_closefrom(actions, _FIRST_FD)
            argv, envp = _array(words), _array(entries)
            start, paths, problem = library.posix_spawn, [words[0]], 0
            if b"/" not in words[0]:
                if env is None:
                    start = library.posix_spawnp  # by our own PATH
                else:
                    paths = [os.fsencode(folder) + b"/" + words[0] for folder in os.get_exec_path(env)]
            for path in paths:
                error = start(ctypes.byref(pid), path, actions, library.attributes, argv, envp)
                if not error:
                    return Child(pid.value, stdout.reader(), stderr.reader())
                problem = error if error not in _NOT_HERE or not problem else problem
        finally:
            library.actions_destroy(actions)
    place = cwd if cwd is not None and not Path(cwd).is_dir() else command[0]
    raise OSError(problem, os.strerror(problem), place)


class _Pipe:
    """A context: what of it nobody has taken is closed. Its ends are above the standard ones, also where those were
    closed when we started."""

    def __enter__(self) -> Self:
        self.read, self.write = os.pipe()
        if min(self.read, self.write) < _FIRST_FD:
            low = self.read, self.write
            self.read, self.write = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_FD) for fd in low)
            for fd in low:
                os.close(fd)
        return self

    def reader(self) -> IO[bytes]:
        fd, self.read = self.read, -1
        return os.fdopen(fd, "rb", buffering=0)

    def __exit__(self, *_raised: object) -> None:
        os.close(self.write)
        if self.read >= 0:
            os.close(self.read)


def _entries(env: Mapping[str, str]) -> list[bytes]:
    """NAME=VALUE."""
    if any("=" in name for name in env):
        raise ValueError("illegal environment variable name")
    return [_text(f"{name}={value}") for name, value in env.items()]


def _text(text: str) -> bytes:
    if "\0" in text:
        raise ValueError("embedded null byte")
    return os.fsencode(text)


def _array(texts: Sequence[bytes]) -> "ctypes.Array[ctypes.c_char_p]":
    return (ctypes.c_char_p * (len(texts) + 1))(*texts)
