"""The tables: by part and ring, and the gate against the whole proof on each half of the catalogue."""

from dataclasses import replace

from tools.power import report
from tools.power.results import Result

BY_GATE = Result("a.py:f:x:1:1", "policy", "line 1", 2, "caught", "tests/test_a.py::test_b", 0, gate=True)
BY_WHOLE = replace(BY_GATE, fault="b.py:f:x:1:1", ring=2, gate=False, test="tests/plane/test_b.py::test_c")
BY_NONE = Result("c.py:f:x:1:1", "chart", "line 3", 2, "uncaught")
HUNG = replace(BY_GATE, fault="d.py:f:x:1:1", outcome="timeout", half=1)


def test_a_part_has_its_faults_by_the_ring_that_caught_them() -> None:
    found = report.tables([BY_GATE, BY_WHOLE, BY_NONE, HUNG])["parts"]
    assert found["policy"] == {"faults": 3, "ring 0": 2, "ring 1": 0, "ring 2": 1, "ring 3": 0, "uncaught": 0}
    assert found["chart"] == {"faults": 1, "ring 0": 0, "ring 1": 0, "ring 2": 0, "ring 3": 0, "uncaught": 1}


def test_the_gate_is_reported_by_the_second_half_of_what_the_whole_proof_catches() -> None:
    found = report.tables([BY_GATE, BY_WHOLE, BY_NONE, HUNG])["gate"]
    assert found[2] == {"faults": 3, "whole": 2, "gate": 1, "percent": 50.0}
    assert found[1] == {"faults": 1, "whole": 1, "gate": 1, "percent": 100.0}


def test_what_only_the_whole_proof_and_what_nothing_catches_is_listed() -> None:
    found = report.tables([BY_GATE, BY_WHOLE, BY_NONE])
    assert [row["fault"] for row in found["whole_only"]] == [BY_WHOLE.fault]
    assert [row["fault"] for row in found["uncaught"]] == [BY_NONE.fault]
    assert "- policy: b.py, line 1 (ring 2: tests/plane/test_b.py::test_c)" in report.text(found)


def test_faults_without_a_result_are_counted_and_in_no_figure() -> None:
    found = report.tables([BY_GATE, HUNG], without_result=3)
    assert (found["whole"], found["gate"][2]["faults"]) == (100.0, 1)
    assert "\n3 more faults have no result yet: they are in no figure.\n" in report.text(found)
    assert "no result yet" not in report.text(report.tables([BY_GATE]))


def test_less_than_is_demanded_is_noticed() -> None:
    assert report.falls_short(report.tables([BY_GATE, BY_WHOLE]))
    assert not report.falls_short(report.tables([BY_GATE, HUNG]))
