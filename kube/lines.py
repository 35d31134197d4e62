"""Pure: a stream of byte blocks, cut anywhere (also inside a UTF-8 rune), becomes complete lines."""

LINE_LIMIT_BYTES = (
    8 * 2**20
)  # an object of etcd's limit, 1.5 MiB, grows by escapes and managedFields; this is 5 times it


class LineTooLong(ValueError):  # noqa: N818 - says what the line is
    """A line passed the limit before its newline came; where the next one begins is not worth waiting for."""


class LineSplitter:
    """Blank lines are dropped; what follows the last newline is kept for the next block, and lost at the end."""

    def __init__(self, limit_bytes: int = LINE_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._rest = bytearray()

    def feed(self, block: bytes) -> list[bytes]:
        """The lines this block completes. Raises LineTooLong (lines completed by the same block are lost with it)."""
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
