"""A table of cases is refused where a row would run under the wrong name or not at all."""

import pytest

from tools.kit.cases import cases


def test_first_cell_is_the_id_and_the_others_are_arguments():
    names, [first, second] = cases("one, two", ("a claim", 1, 2), ("another", 3, None)).args
    assert ["one", "two"] == names
    assert [("a claim", (1, 2)), ("another", (3, None))] == [(row.id, row.values) for row in (first, second)]


@cases(
    "rows",
    ("no id", [("", 1)]),
    ("an id that is no text", [(7, 1)]),
    ("an id twice", [("a", 1), ("a", 2)]),
    ("a cell too few", [("a",)]),
    ("a cell too many", [("a", 1, 2)]),
)
def test_wrong_row_is_refused(rows):
    with pytest.raises(
        ValueError, match=f"^the row {rows[-1][0]!r} needs an id of its own and a cell for each of one$"
    ):
        cases("one", *rows)
