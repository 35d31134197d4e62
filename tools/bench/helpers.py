"""Programs that load an extender beside the one who measures: they end when told to, and say what they saw."""

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tools.bench.processes import MeasurementError

END_LIMIT_S = 20.0


@dataclass(frozen=True)
class Calls:
    """What a caller saw. took_ms: of the good answers, in order; failed: how many calls were none, by cause."""

    took_ms: Sequence[float]
    failed: Mapping[str, int]

    @property
    def failures(self) -> int:
        return sum(self.failed.values())

    def waited_ms(self, timeout_ms: float) -> list[float]:
        """How long each call held the caller up: one that failed, its whole timeout at the most."""
        return [*self.took_ms, *([timeout_ms] * self.failures)]

    @property
    def causes(self) -> str:
        return ", ".join(f"{number} {cause}" for cause, number in sorted(self.failed.items())) or "none"


class Helper:
    """One command of the Go program that prints a JSON object at its end. The `with` block ends it, come what may."""

    def __init__(self, binary: Path, *words: str, limit_s: float, elsewhere: bool = False) -> None:
        """limit_s: when it ends by itself. elsewhere: who would ask from another machine takes what others leave."""
        self._name = words[0]
        self._limit_s = limit_s
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the block; a pipe would fill up
        argv = [str(binary), *words, "-for", f"{limit_s:.3f}s"]
        if elsewhere:
            argv = ["chrt", "--idle", "0", *argv]
        self._popen = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=self._output, stderr=subprocess.PIPE, start_new_session=elsewhere
        )
        if (
            elsewhere
        ):  # idle tells within a session; where the kernel weighs these, ours weighs as much as that of an arm
            with suppress(OSError):
                Path(f"/proc/{self._popen.pid}/autogroup").write_text("19")

    def wait(self) -> dict[str, Any]:
        """What it saw until it ended by itself."""
        return self._seen(self._limit_s + END_LIMIT_S)

    def end(self) -> dict[str, Any]:
        """What it saw until now."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        return self._seen(END_LIMIT_S)

    def _seen(self, limit_s: float) -> dict[str, Any]:
        try:
            code = self._popen.wait(limit_s)
        except subprocess.TimeoutExpired as e:
            raise MeasurementError(f"{self._name} does not end") from e
        if code != 0:
            error = b"" if self._popen.stderr is None else self._popen.stderr.read()
            raise MeasurementError(error.decode().strip() or f"{self._name} ended with {code}")
        self._output.seek(0)
        seen: dict[str, Any] = json.load(self._output)
        return seen

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._popen.kill()
        self._popen.wait()
        for stream in (self._popen.stdin, self._popen.stderr, self._output):
            if stream is not None:
                stream.close()


class Caller(Helper):
    """Asks like kube-scheduler: serial, one kept connection, a timeout, and on with the next whatever happens.

    connections: so many of these at once, in one process.
    """

    def __init__(
        self,
        binary: Path,
        url: str,
        *,
        limit_s: float,
        names: int = 812,
        nodes: int = 5000,
        timeout_s: float = 1.0,
        pause_s: float = 0.003,
        connections: int = 1,
    ) -> None:
        words = ["-names", str(names), "-nodes", str(nodes), "-timeout", f"{timeout_s}s", "-pause", f"{pause_s}s"]
        words += ["-connections", str(connections)]
        super().__init__(binary, "call", "-url", url, *words, limit_s=limit_s)

    def calls(self, *, now: bool = False) -> Calls:
        """All of them until it ended by itself, or until now; connection by connection."""
        seen = self.end() if now else self.wait()
        return Calls([microseconds / 1000 for microseconds in seen["latency_us"]], seen["failed"])
