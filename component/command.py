"""Common parts of all command lines: exit codes, one-line errors, the product's version."""

import sys
from pathlib import Path

from component.text import one_line

EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


def complain(program: str, text: object, code: int) -> int:
    """Writes `program: text` as one line to standard error. Returns `code`."""
    print(f"{program}: {one_line(text, 1000)}", file=sys.stderr)
    return code


def product_version() -> str:
    """From the name of the metadata's folder: importlib.metadata would cost two MiB."""
    return next((info.stem[10:] for at in sys.path for info in Path(at).glob("readygate-*.dist-info")), "unknown")
