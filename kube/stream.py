"""An open watch: bytes in, complete lines out, all available ones at once."""

import http.client
import math
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import urllib3

from kube import errors
from kube.lines import Chunks, LineSplitter, LineTooLong
from kube.transport import TimedReader

BATCH_BYTES = 2**20  # at once, at most
_BROKEN = (LineTooLong, http.client.HTTPException, OSError, ValueError)


class WatchStream:
    """An open watch: iterate, or use `batches`, to get complete lines without the newline; a context manager.

    The iteration ends when the server ends the stream or the connection breaks, and after close(). It raises
    DeadlineExceeded when no complete line came for `silence_limit_s`, MalformedReply when a line passes 8 MiB; earlier
    lines were returned then.
    """

    def __init__(self, connection: Any, response: urllib3.BaseHTTPResponse, path: str, silence_limit_s: float) -> None:  # noqa: ANN401
        self._connection = connection
        self._response = response  # which would close the answer under it
        self._answer: http.client.HTTPResponse = connection.answer
        self._reader: TimedReader = connection.reader
        self._lifeline = connection.lifeline
        self._path = path
        self._silence_limit_s = silence_limit_s
        self._closed = threading.Event()
        self._chunks = Chunks() if self._answer.chunked else None
        self._length_bytes = math.inf if self._answer.length is None else self._answer.length
        self._read_bytes = 0
        self._lines = LineSplitter()
        self._more = False  # more bytes were available

    def __iter__(self) -> Iterator[bytes]:
        for lines in self.batches():
            yield from lines

    def batches(self, *, rest_s: float = 0.0, look_s: float = math.inf) -> Iterator[list[bytes]]:
        """Yields the available lines at once; then rest_s later those that have come in the meantime, so that a flood
        wakes the thread seldom. Without a pause while more is available than is taken at once: that would be a lag.
        Yields an empty list when nothing has come for look_s."""
        self._reader.deadline = time.monotonic() + self._silence_limit_s
        failure: Exception | None = None
        ended = False
        try:
            while not (ended or self._closed.is_set()):
                lines: list[bytes] = []
                try:
                    ended = self._gather(lines, look_s)
                except _BROKEN as e:
                    ended, failure = True, e
                if lines:
                    self._reader.deadline = time.monotonic() + self._silence_limit_s
                if lines or not ended:
                    yield lines
                if lines and rest_s and not ended and not self._more:
                    self._closed.wait(rest_s)
            if failure is not None:
                self._tell(failure)
        finally:
            self._close()

    def _gather(self, lines: list[bytes], look_s: float) -> bool:
        """Waits for bytes, and takes all that are available. Returns whether the stream has ended."""
        blocks: list[bytes] = []
        try:
            ended = self._read(blocks, look_s)
        finally:  # bytes before the break count; TLS returns one event a block, so blocks are split at once
            came = b"".join(blocks)
            if came:
                lines += self._lines.feed(came if self._chunks is None else self._chunks.feed(came))
        return ended or (self._chunks is not None and self._chunks.ended)

    def _read(self, blocks: list[bytes], look_s: float) -> bool:
        reader, read = self._reader, self._answer.fp.read1
        taken_bytes, self._more = 0, False
        while taken_bytes < BATCH_BYTES:
            if self._answer.isclosed() or self._read_bytes >= self._length_bytes:
                return True
            reader.patience_s, reader.dry = 0.0 if blocks else look_s, False
            block = read(65536)
            if not block:
                return not reader.dry
            blocks.append(block)
            taken_bytes += len(block)
            self._read_bytes += len(block)
            if self._length_bytes == math.inf:  # the buffer has returned everything
                ended = reader.take_rest(blocks, BATCH_BYTES - taken_bytes)
                self._more = not (ended or reader.dry)
                return ended
        self._more = True
        return False

    def _tell(self, error: Exception) -> None:
        """Raises what the reader must know. A cut is no error: what was read stays true, and the watch goes on from
        there."""
        if self._closed.is_set():
            return
        if isinstance(error, LineTooLong):
            raise errors.MalformedReply(path=self._path, reason="LineTooLong", message=str(error)) from error
        if isinstance(error, TimeoutError):
            message = f"no line for {self._silence_limit_s:g} s"
            raise errors.DeadlineExceeded(path=self._path, reason="Silent", message=message) from error

    def _close(self) -> None:
        self._response.close()
        self._connection.close()
        self._lifeline = None

    def close(self) -> None:
        """Ends the stream and unblocks its reader, from any thread. May be called twice."""
        self._closed.set()
        lifeline = self._lifeline
        if lifeline is not None:
            lifeline.cut()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._close()
