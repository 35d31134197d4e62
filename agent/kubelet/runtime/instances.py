"""One container instance as the process runtime holds it: its record, and its process while it runs."""

import contextlib
import errno
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from agent.kubelet.runtime.output import Output
from agent.kubelet.runtime.records import InstanceRecord, SandboxRecord
from agent.processes.proc import start_ticks
from agent.wire.containers import ContainerPhase, RuntimeContainer

ID_PREFIX = "process://"
EXIT_CODE_NOT_STARTED = 128  # as containerd reports a container whose start failed


class LogFailedError(OSError):
    """The file for a container's output cannot be made. str() says which and why."""


@dataclass(slots=True)
class Instance:
    """`process`, `pidfd` and `output` belong to the runtime's thread; `process` is None once it has ended."""

    uid: str
    record: InstanceRecord
    process: subprocess.Popen[bytes] | None = None
    pidfd: int = -1
    output: Output | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    kill_at: float | None = None


@dataclass(slots=True)
class SandboxState:
    record: SandboxRecord
    instances: list[Instance] = field(default_factory=list)


def sandbox_id(uid: str) -> str:
    """A pod has one, ever."""
    return f"{ID_PREFIX}{uid}"


def launch(instance: Instance, argv: list[str], working_dir: str, output: Output, writer: int, wall: float) -> None:
    """Makes the process in a session of its own; output goes to `writer`. Raises OSError: then there is no process."""
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.STDOUT,
            env=dict(instance.env),
            cwd=working_dir or "/",
            start_new_session=True,
        )
    except ValueError as e:  # a NUL in an argument or a variable, or a name with "="
        raise OSError(errno.EINVAL, str(e)) from e
    try:
        instance.pidfd = os.pidfd_open(process.pid)
    except OSError:
        process.kill()
        process.wait()
        raise
    instance.process, instance.output = process, output
    instance.record = msgspec.structs.replace(
        instance.record, started_at=wall, pid=process.pid, start_ticks=start_ticks(process.pid) or 0
    )


def not_started(record: InstanceRecord, message: str, wall: float) -> InstanceRecord:
    return msgspec.structs.replace(
        record,
        started_at=wall,
        finished_at=wall,
        exit_code=EXIT_CODE_NOT_STARTED,
        reason="StartError",
        message=message,
    )


def ended(record: InstanceRecord, returncode: int, wall: float) -> InstanceRecord:
    """`returncode` as subprocess gives it: minus the number of the signal that ended the process."""
    exit_code = returncode if returncode >= 0 else 128 - returncode
    reason = "Completed" if exit_code == 0 else "Error"
    return msgspec.structs.replace(record, finished_at=wall, exit_code=exit_code, reason=reason)


def as_runtime_container(record: InstanceRecord) -> RuntimeContainer:
    return RuntimeContainer(
        id=record.id,
        name=record.name,
        phase=ContainerPhase.RUNNING if record.exit_code is None else ContainerPhase.EXITED,
        created_at=record.created_at,
        started_at=record.started_at,
        finished_at=record.finished_at,
        exit_code=record.exit_code or 0,
        reason=record.reason,
        message=record.message,
        restart_count=record.attempt,
        image=record.image,
    )


def start_message(program: str, working_dir: str, error: OSError) -> str:
    if isinstance(error, LogFailedError):
        return str(error)
    if working_dir and not Path(working_dir).is_dir():
        return f"working directory {working_dir} does not exist"
    if isinstance(error, FileNotFoundError):
        return f'exec: "{program}": executable file not found'
    return f'exec: "{program}": {error.strerror or error}'


@contextlib.contextmanager
def output_pipe(make_output: Callable[[int], Output]) -> Iterator[tuple[Output, int]]:
    """A pipe for what a container writes: an Output of its reading end, and its writing end, closed at the end.

    What the block raises closes the Output too: nobody has taken it over.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC)
    try:
        try:
            output = make_output(reader)
        except OSError:
            os.close(reader)
            raise
        try:
            yield output, writer
        except Exception:
            output.close()
            raise
    finally:
        os.close(writer)
