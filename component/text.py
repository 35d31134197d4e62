"""Free text: one printable line of it, and `$(NAME)` references in it. Pure."""

import re
from collections.abc import Mapping

MESSAGE_LIMIT = 256  # characters; messages of others may quote whole objects
REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))", re.DOTALL)


def one_line(text: object, limit: int = MESSAGE_LIMIT, *, limit_bytes: int | None = None) -> str:
    """`text` with white space and unprintable characters folded to single spaces, cut to `limit` characters, or to
    `limit_bytes` of UTF-8 at a character's border. Looks at no more than eight times as much."""
    most = limit if limit_bytes is None else limit_bytes
    head = str(text)[: most * 8]
    shown = head if head.isprintable() else "".join(c if c.isprintable() else " " for c in head)
    line = " ".join(shown.split())[:most]
    return line if limit_bytes is None else line.encode()[:limit_bytes].decode(errors="ignore")


def expand(text: str, values: Mapping[str, str]) -> str:
    """`$(NAME)` -> its value, unchanged if there is none; `$$` -> `$`; any other `$` stays. Values are not expanded.
    Mirrors third_party/forked/golang/expansion of Kubernetes."""
    return REFERENCE.sub(lambda match: "$" if match[0] == "$$" else values.get(match[1], match[0]), text)
