"""How Go quotes a text. Pure."""

from collections.abc import Iterable

_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
_ESCAPES |= {"\\": r"\\", '"': r"\""}


def quoted(text: str) -> str:
    """strconv.Quote of Go. Bytes that are no UTF-8 are as `surrogateescape` has them."""
    return '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else _code(c)) for c in text) + '"'


def quoted_bytes(text: str) -> str:
    """The same of a text that holds one character a byte (latin-1)."""
    return quoted(text if text.isascii() else text.encode("latin-1").decode(errors="surrogateescape"))


def quoted_list(texts: Iterable[str]) -> str:
    """Go's %q of a list of such texts."""
    return f"[{' '.join(map(quoted_bytes, texts))}]"


def _code(c: str) -> str:
    number = ord(c)
    if number < 0x80:
        return f"\\x{number:02x}"
    if 0xDC80 <= number < 0xDD00:
        return f"\\x{number - 0xDC00:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
