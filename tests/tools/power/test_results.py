"""Results outlive a kill: a line for each fault, of which the last one counts."""

from dataclasses import replace
from pathlib import Path

from tools.power.results import Result, Results, merged

ROW = Result("a.py:f:x:1:1", "policy", "line 1", 1, "uncaught", file_blob="blob", tried={"0g": "k"})


def test_the_last_line_of_a_fault_counts(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    Results(path).add(ROW)
    Results(path).add(replace(ROW, outcome="caught"))
    assert {name: row.outcome for name, row in Results(path).rows.items()} == {ROW.fault: "caught"}


def test_a_line_cut_short_by_a_kill_costs_that_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    Results(path).add(ROW)
    path.write_text(path.read_text() + '{"fault": "b.py')
    results = Results(path)
    results.add(replace(ROW, fault="c"))
    assert sorted(Results(path).rows) == [ROW.fault, "c"]


def test_a_result_is_of_one_text_of_its_file(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    results.add(ROW)
    assert (results.of(ROW.fault, "blob"), results.of(ROW.fault, "another")) == (ROW, None)


def test_batches_that_were_tried_in_vain_are_kept() -> None:
    assert merged(ROW, replace(ROW, tried={"1g": "l"})).tried == {"0g": "k", "1g": "l"}
