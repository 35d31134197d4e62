"""Pure: a stream of byte blocks, cut anywhere (also inside a UTF-8 rune), to complete lines.

A watch comes in HTTP chunks. http.client decodes one chunk a call, and cannot say whether more bytes are there. So the
chunks are decoded here, all available ones at once.
"""

import re

LINE_LIMIT_BYTES = (
    8 * 2**20
)  # an object of etcd's limit, 1.5 MiB, grows by escapes and managedFields; this is 5 times it

_SIZE = re.compile(rb"([0-9a-fA-F]{1,12})[ \t]*(?:;.*)?$")
_SIZE_LIMIT_BYTES = 4096


class LineTooLong(ValueError):  # noqa: N818 - says what the line is
    """A line passed the limit without a newline; finding the next line is not worth waiting for."""


class LineSplitter:
    """Splits blocks into lines. Blank lines are dropped. Bytes after the last newline wait for the next block, and are
    lost at the end."""

    def __init__(self, limit_bytes: int = LINE_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._rest = bytearray()

    def feed(self, block: bytes) -> list[bytes]:
        """Returns the lines that this block completes. Raises LineTooLong, and loses lines that the same block
        completes."""
        head, newline, tail = block.rpartition(b"\n")
        if not newline:
            self._keep(block)
            return []
        first, *others = head.split(b"\n")
        self._keep(first)
        lines = [bytes(self._rest), *others]
        self._rest.clear()
        self._keep(tail)
        return [line for line in lines if line.strip()]

    def _keep(self, part: bytes) -> None:
        if len(self._rest) + len(part) > self._limit_bytes:
            raise LineTooLong(f"a line is longer than {self._limit_bytes} bytes")
        self._rest += part


class Chunks:
    """Decodes chunked coding (RFC 9112, 7.1). ended: the last chunk has come; later bytes are ignored."""

    def __init__(self) -> None:
        self.ended = False
        self._left = 0  # bytes of the chunk that are still to come
        self._behind = False  # the line end after a chunk is still to come
        self._rest = b""  # of a line whose end has not come

    def feed(self, block: bytes) -> bytes:
        """Returns the decoded bytes. Raises ValueError if there is no valid chunk."""
        parts: list[bytes] = []
        block, self._rest, at = self._rest + block, b"", 0
        while at < len(block) and not self.ended:
            if self._left:
                part = block[at : at + self._left]
                parts.append(part)
                at += len(part)
                self._left -= len(part)
                self._behind = not self._left
                continue
            end = block.find(b"\n", at)
            if end < 0:
                self._rest = block[at:]
                if len(self._rest) > _SIZE_LIMIT_BYTES:
                    raise ValueError("the size of a chunk does not end")
                break
            self._size_or_end(block[at:end].rstrip(b"\r"))
            at = end + 1
        return b"".join(parts)

    def _size_or_end(self, line: bytes) -> None:
        if self._behind:
            self._behind = False
            if line:
                raise ValueError("a chunk is longer than its size")
            return
        found = _SIZE.match(line)
        if found is None:
            raise ValueError("a chunk without a size")
        self._left = int(found[1], 16)
        self.ended = not self._left
