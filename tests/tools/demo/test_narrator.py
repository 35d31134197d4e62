"""The demo is read on a terminal of any width."""

import pytest

from tools.demo.narrator import Narrator, Row, StepMissedError, table, width

ROWS = [
    Row("1. control plane", "API server ready at https://127.0.0.1:34567", 3.42),
    Row("6. node-2's check fails", "the health pod of node-2 is not Ready, the others are", 1.7),
    Row("7. new pods avoid node-2", "NOT SEEN", None),
]


@pytest.mark.parametrize("columns", [40, 60, 80, 89, 90, 110])
def test_no_line_of_the_table_is_wider_than_the_terminal(columns):
    assert [line for line in table(ROWS, columns) if len(line) > columns] == []


@pytest.mark.parametrize("columns", [60, 110])
def test_every_step_stands_in_one_line_with_its_seconds(columns):
    ends = [next(line for line in table(ROWS, columns) if line.startswith(f" {row.step}")).split()[-1] for row in ROWS]
    assert ["3.4", "1.7", "-"] == ends


def test_on_a_narrow_terminal_what_was_seen_stands_below_its_step():
    assert [
        " step and what was seen                                    s",
        " ----------------------------------------------------  -----",
        " 1. control plane                                        3.4",
        "     API server ready at https://127.0.0.1:34567",
    ] == table(ROWS[:1], 60)


@pytest.mark.parametrize(
    ("columns", "used"),
    [("20", 40), ("60", 60), ("300", 110)],
    ids=["tiny", "what there is", "no wider than reads well"],
)
def test_the_width_is_that_of_the_terminal(monkeypatch, columns, used):
    monkeypatch.setenv("COLUMNS", columns)
    assert used == width()


def test_a_path_is_never_broken(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines: list[str] = []
    path = "/srv/readygate/build/logs/demo/20261121T220121Z-6591-1"
    Narrator(lines.append).paragraph(f"Logs: {path}")
    assert ["Logs:", path] == lines


def test_nothing_was_waited_for_so_there_is_no_table():
    lines: list[str] = []
    Narrator(lines.append).table()
    assert lines == []


def test_a_step_that_was_not_seen_says_what_was_there_instead():
    narrator = Narrator(lambda _: None)
    narrator.step("Something is done.")
    with pytest.raises(StepMissedError) as missed:
        narrator.await_seen("its effect", lambda: None, str, instead=lambda: "nothing at all", limit_s=0.0)
    assert "step 1, its effect: not seen within 0 s. The API server shows: nothing at all" == str(missed.value)
