"""A parametrized test as a table: one row for each case."""

from typing import Any

import pytest


def cases(columns: str, *rows: tuple[Any, ...]) -> pytest.MarkDecorator:
    """Runs the test once for each row. A row's first cell is the case's id, the others are its arguments.

    Raises ValueError for an id that is empty, no text, or of two rows, and for a row with a cell too many or too few.
    """
    names = [name.strip() for name in columns.split(",")]
    ids = [row[0] for row in rows]
    for row in rows:
        if not isinstance(row[0], str) or not row[0] or ids.count(row[0]) > 1 or len(row) != len(names) + 1:
            raise ValueError(f"the row {row[0]!r} needs an id of its own and a cell for each of {columns}")
    return pytest.mark.parametrize(names, [pytest.param(*arguments, id=name) for name, *arguments in rows])
