"""Rows EP: when a node is under pressure, and what was measured."""

import logging
from pathlib import Path

import pytest

from agent.node.measure import CannotMeasureError, Measure, PressureWatch, memory_of, tasks_of
from agent.node.pressure import MEMORY, NODEFS, PIDS, Observation, Pressure, duration_s, looked, thresholds_of
from tests.kit.clock import Clock

M, D, P = "MemoryPressure", "DiskPressure", "PIDPressure"


def played(thresholds, transition_s: float, *left: int | None, step_s: float = 10.0) -> list[bool]:
    """After each look, ten seconds apart, at 1000 bytes of memory of which so many are left."""
    pressure, said = Pressure(), []
    for number, available in enumerate(left):
        seen = {} if available is None else {MEMORY: Observation(1000, available)}
        pressure = looked(pressure, thresholds, seen, transition_s, number * step_s)
        said.append(M in pressure.conditions)
    return said


HARD = thresholds_of({MEMORY: "100"}, {}, {}, {})
SOFT = thresholds_of({}, {MEMORY: "100"}, {MEMORY: "15s"}, {MEMORY: "50"})


@pytest.mark.parametrize(
    ("thresholds", "transition_s", "left", "expected"),
    [
        pytest.param(HARD, 5.0, (100, 99, 100), [False, True, False], id="EP1 less than the threshold"),
        pytest.param(
            thresholds_of({MEMORY: "33.35%"}, {}, {}, {}), 5.0, (333, 332), [False, True], id="EP1 a part of all"
        ),
        pytest.param(SOFT, 5.0, (99, 100), [True, False], id="EP2 a soft one at once"),
        pytest.param(
            HARD, 25.0, (99, 100, 100, 100), [True, True, True, False], id="EP3 it stays for the transition period"
        ),
        pytest.param(HARD, 25.0, (99, 100, 99, 100, 100, 100), [True] * 5 + [False], id="EP3 from the last time on"),
        pytest.param(HARD, 0.0, (99,), [False], id="EP3 a period of nothing"),
        pytest.param(
            SOFT, 5.0, (99, 99, 99, 149, 150), [True, True, True, True, False], id="EP4 until the minimum is back"
        ),
        pytest.param(SOFT, 5.0, (99, 99, 149), [True, True, False], id="EP4 not before its grace period is over"),
        pytest.param(HARD, 5.0, (99, None), [True, False], id="EP5 one that was not measured"),
    ],
)
def test_when_a_node_is_under_pressure(thresholds, transition_s: float, left, expected: list[bool]) -> None:
    assert expected == played(thresholds, transition_s, *left)


def test_each_signal_has_its_condition() -> None:
    every = {MEMORY: "10%", NODEFS: "10%", "nodefs.inodesFree": "10%", PIDS: "10%"}
    for signal, kind in ((MEMORY, M), (NODEFS, D), ("nodefs.inodesFree", D), (PIDS, P)):
        seen = {signal: Observation(100, 9)}
        assert {kind} == looked(Pressure(), thresholds_of(every, {}, {}, {}), seen, 9.0, 0.0).conditions


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(({MEMORY: "0%"}, {}, {}, {}), 0, id="EP6 0% says nothing"),
        pytest.param(({}, {MEMORY: "100%"}, {}, {}), 0, id="EP6 nor does 100%, soft and without a period"),
        pytest.param(({"x": "1"}, {}, {}, {}), "evictionHard.x: is not known", id="EP6 no signal"),
        pytest.param(({MEMORY: "0"}, {}, {}, {}), "evictionHard.memory.available: 0 is not valid", id="EP6 nothing"),
        pytest.param(({MEMORY: "101%"}, {}, {}, {}), "101% is not valid", id="EP6 more than all"),
        pytest.param(({MEMORY: "ten"}, {}, {}, {}), "ten is not valid, allowed: an amount, as 100Mi", id="EP6 words"),
        pytest.param(
            ({}, {MEMORY: "1"}, {}, {}), "evictionSoftGracePeriod: memory.available is missing", id="EP6 soft"
        ),
        pytest.param(
            ({}, {}, {MEMORY: "5"}, {}), "evictionSoftGracePeriod.memory.available: 5 is not", id="EP6 period"
        ),
        pytest.param(({}, {}, {}, {MEMORY: "0%"}), "evictionMinimumReclaim.memory.available: 0%", id="EP6 no reclaim"),
    ],
)
def test_settings(given, expected: int | str) -> None:
    if isinstance(expected, int):
        assert expected == len(thresholds_of(*given))
        return
    with pytest.raises(ValueError, match=expected.replace(".", r"\.")):
        thresholds_of(*given)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0.0),
        ("1m30s", 90.0),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("100ms", 0.1),
        ("5", None),
        ("", None),
        ("1s ", None),
    ],
)
def test_a_duration_as_go_reads_it(text: str, expected: float | None) -> None:
    assert expected == duration_s(text)


def test_ep8_what_the_kernel_shows() -> None:
    meminfo = "MemTotal:  100 kB\nMemFree:   20 kB\nInactive(file):    5 kB\nHugePages_Total:  0\n"
    assert Observation(100 * 1024, 25 * 1024) == memory_of(meminfo)
    assert Observation(4000, 482) == tasks_of("1.36 3.49 4.53 2/3518 3715089\n", ["4194304\n", "4000\n"])


@pytest.mark.parametrize("what", [lambda: memory_of("MemTotal: 1 kB\n"), lambda: tasks_of("", ["1"])])
def test_what_is_no_such_file(what) -> None:
    with pytest.raises(ValueError):
        what()


def test_this_machine_is_measured(tmp_path: Path) -> None:
    found = Measure(tmp_path)()
    assert all(0 < one.available <= one.capacity for signal, one in found.items() if signal != "nodefs.inodesFree")
    assert {MEMORY, NODEFS, "nodefs.inodesFree", PIDS} == found.keys()


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CannotMeasureError, match="none"):
        Measure(tmp_path / "none")()


def test_ep5_what_cannot_be_measured_leaves_all_as_it_was_and_is_said_once(caplog) -> None:
    clock, said = Clock(), [{MEMORY: Observation(1000, 1)}, None, None, {MEMORY: Observation(1000, 900)}]

    def measure():
        found = said.pop(0)
        if found is None:
            raise CannotMeasureError("/d: no answer within 5 s")
        return found

    watch, seen = PressureWatch(HARD, 5.0, measure, monotonic=clock), []
    with caplog.at_level(logging.INFO):
        while said:
            watch.turn()
            seen.append(set(watch.conditions))
            clock.time += 10
    assert [{M}, {M}, {M}, set()] == seen
    assert ["node pressure changed", "node not measured", "node pressure changed"] == [
        r.message for r in caplog.records
    ]
