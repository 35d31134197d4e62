"""Rows EP: when a node is under pressure, and what was measured."""

import logging
import os
from pathlib import Path

import pytest

from agent.kubelet.node import measure as measuring
from agent.kubelet.node.measure import CannotMeasureError, Measure, PressureWatch, memory_of, tasks_of
from agent.kubelet.node.pressure import (
    CONTAINERFS,
    IMAGEFS,
    MEMORY,
    NODEFS,
    PIDS,
    Observation,
    Pressure,
    Seen,
    duration_s,
    looked,
    thresholds_of,
    with_containers,
)
from agent.processes.command import RuntimeUnavailable
from tools.kit.cases import cases
from tools.kit.clock import Clock

M, D, P = "MemoryPressure", "DiskPressure", "PIDPressure"


def played(thresholds, transition_s: float, *left: int | None, step_s: float = 10.0) -> list[bool]:
    """After each look, ten seconds apart, at 1000 bytes of memory of which so many are left."""
    pressure, said = Pressure(), []
    for number, available in enumerate(left):
        seen = {} if available is None else {MEMORY: Observation(1000, available)}
        pressure = looked(pressure, thresholds, Seen(seen), transition_s, number * step_s)
        said.append(M in pressure.conditions)
    return said


HARD = thresholds_of({MEMORY: "100"}, {}, {}, {})
SOFT = thresholds_of({}, {MEMORY: "100"}, {MEMORY: "15s"}, {MEMORY: "50"})


@cases(
    "thresholds, transition_s, left, expected",
    ("EP1 less than the threshold", HARD, 5.0, (100, 99, 100), [False, True, False]),
    ("EP1 a part of all", thresholds_of({MEMORY: "33.35%"}, {}, {}, {}), 5.0, (333, 332), [False, True]),
    ("EP2 a soft one at once", SOFT, 5.0, (99, 100), [True, False]),
    ("EP3 it stays for the transition period", HARD, 25.0, (99, 100, 100, 100), [True, True, True, False]),
    ("EP3 from the last time on", HARD, 25.0, (99, 100, 99, 100, 100, 100), [True] * 5 + [False]),
    ("EP3 a period of nothing", HARD, 0.0, (99,), [False]),
    ("EP4 until the minimum is back", SOFT, 5.0, (99, 99, 99, 149, 150), [True, True, True, True, False]),
    ("EP4 not before its grace period is over", SOFT, 5.0, (99, 99, 149), [True, True, False]),
    ("EP5 one that was not measured", HARD, 5.0, (99, None), [True, False]),
)
def test_when_a_node_is_under_pressure(thresholds, transition_s: float, left, expected: list[bool]) -> None:
    assert expected == played(thresholds, transition_s, *left)


def test_each_signal_has_its_condition() -> None:
    disks = {f"{system}.{what}": D for system in ("nodefs", "imagefs") for what in ("available", "inodesFree")}
    kinds = {MEMORY: M, PIDS: P, **disks}
    for signal, kind in kinds.items():
        seen = Seen({signal: Observation(100, 9)})
        every = thresholds_of(dict.fromkeys(kinds, "10%"), {}, {}, {})
        assert {kind} == looked(Pressure(), every, seen, 9.0, 0.0).conditions


@cases(
    "seen, hard, expected",
    ("one file system for all: those of nodefs", Seen({}), {NODEFS: "1", IMAGEFS: "2"}, ["1"]),
    ("images and containers apart: of imagefs", Seen({}, images_apart=True), {NODEFS: "1", IMAGEFS: "2"}, ["2"]),
    ("containers on nodefs", Seen({}, images_apart=True, containers_apart=True), {NODEFS: "1", IMAGEFS: "2"}, ["1"]),
    ("what is configured does not count", Seen({}), {CONTAINERFS: "3", NODEFS: "1"}, ["1"]),
    ("nor where there is nothing else", Seen({}), {CONTAINERFS: "3"}, []),
)
def test_ep9_thresholds_of_the_containers(seen: Seen, hard: dict[str, str], expected: list[str]) -> None:
    soft = {signal: f"{text}0" for signal, text in hard.items()}
    found = with_containers(thresholds_of(hard, soft, dict.fromkeys(hard, "9s"), dict.fromkeys(hard, "7")), seen)
    of_containers = [(str(t.value.amount), t.grace_s, t.reclaim is not None) for t in found if t.signal == CONTAINERFS]
    assert [*((n, 0.0, True) for n in expected), *((f"{n}0", 9.0, True) for n in expected)] == of_containers
    assert sum(2 for signal in hard if signal != CONTAINERFS) == sum(1 for t in found if t.signal in (NODEFS, IMAGEFS))


def test_ep9_where_containers_are_is_found_once() -> None:
    apart, together = (
        Seen({CONTAINERFS: Observation(100, 9)}, images_apart=True),
        Seen({CONTAINERFS: Observation(1, 0)}),
    )
    pressure = looked(Pressure(), thresholds_of({NODEFS: "10"}, {}, {}, {}), apart, 9.0, 0.0)
    assert set() == looked(pressure, (), together, 9.0, 10.0).conditions


@cases(
    "given, expected",
    ("EP6 0% says nothing", ({MEMORY: "0%"}, {}, {}, {}), 0),
    ("EP6 nor does 100%, soft and without a period", ({}, {MEMORY: "100%"}, {}, {}), 0),
    ("EP6 no signal", ({"x": "1"}, {}, {}, {}), "evictionHard.x: is not known"),
    ("EP6 nothing", ({MEMORY: "0"}, {}, {}, {}), "evictionHard.memory.available: 0 is not valid"),
    ("EP6 more than all", ({MEMORY: "101%"}, {}, {}, {}), "101% is not valid"),
    ("EP6 words", ({MEMORY: "ten"}, {}, {}, {}), "ten is not valid, allowed: an amount, as 100Mi"),
    ("EP6 soft", ({}, {MEMORY: "1"}, {}, {}), "evictionSoftGracePeriod: memory.available is missing"),
    ("EP6 period", ({}, {}, {MEMORY: "5"}, {}), "evictionSoftGracePeriod.memory.available: 5 is not"),
    ("EP6 less than 0", ({}, {}, {MEMORY: "-1s"}, {}), "evictionSoftGracePeriod.memory.available: -1s"),
    ("EP6 no reclaim", ({}, {}, {}, {MEMORY: "0%"}), "evictionMinimumReclaim.memory.available: 0%"),
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
        ("+1s", 1.0),
        ("-1m30s", -90.0),
        ("-0", 0.0),
        ("2\u00b5s", 2e-6),
        ("2\u03bcs", 2e-6),
        ("3000000h", None),
        ("+", None),
        ("1s-1s", None),
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
    found = Measure(tmp_path)().observations
    assert all(0 < one.available <= one.capacity for signal, one in found.items() if signal != "nodefs.inodesFree")
    assert {MEMORY, NODEFS, "nodefs.inodesFree", PIDS} == found.keys()


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CannotMeasureError, match=r"^FileNotFoundError: .*none'$"):
        Measure(tmp_path / "none")()


def test_ep10_images_and_containers_are_measured_where_the_runtime_says_that_they_are(tmp_path: Path) -> None:
    folder, shared = str(tmp_path), "/dev/shm"
    told = [(folder, folder), (shared, shared), (folder, shared), (shared, folder)]
    measure = Measure(tmp_path, folders=lambda: told.pop(0))
    found = [measure() for _ in range(4)]
    assert [(False, False), (True, False), (True, True), (True, True)] == [
        (one.images_apart, one.containers_apart) for one in found
    ]
    sizes = [os.statvfs(where).f_blocks * os.statvfs(where).f_frsize for where in (folder, shared)]
    seen = [[one.observations[s].capacity for s in (NODEFS, IMAGEFS, CONTAINERFS)] for one in found]
    here, there = sizes
    assert [[here, here, here], [here, there, there], [here, here, there], [here, there, here]] == seen


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param(RuntimeUnavailable("ImageFsInfo on /s: nobody listens"), "nobody listens", id="EP11 it is silent"),
        pytest.param("/there/is/none", "FileNotFoundError: .*/there/is/none", id="EP11 there is no such folder"),
        pytest.param("/x\0y", "embedded null byte", id="EP11 it is no folder's name"),
    ],
)
def test_nothing_is_measured_where_images_cannot_be(tmp_path: Path, told: str | Exception, expected: str) -> None:
    def folders() -> tuple[str, str]:
        if isinstance(told, Exception):
            raise told
        return told, told

    measure = Measure(tmp_path, folders=folders)
    for _ in range(2):
        with pytest.raises(CannotMeasureError, match=expected) as caught:
            measure()
        assert "\n" not in str(caught.value)


def test_ep12_a_file_system_that_hangs_leaves_all_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "WITHIN_S", 0.3)
    monkeypatch.setattr(measuring, "SCRIPT", "import time; time.sleep(60)")
    with pytest.raises(CannotMeasureError, match=f"{tmp_path} or /i or /c: no answer within 0.3 s"):
        Measure(tmp_path, folders=lambda: ("/i", "/c"))()


def test_ep5_what_cannot_be_measured_leaves_all_as_it_was_and_is_said_once(caplog) -> None:
    clock, said = Clock(), [{MEMORY: Observation(1000, 1)}, None, None, {MEMORY: Observation(1000, 900)}]

    def measure() -> Seen:
        found = said.pop(0)
        if found is None:
            raise CannotMeasureError("/d: no answer within 5 s")
        return Seen(found)

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


def test_ep9_of_two_that_differ_in_what_has_to_be_reclaimed_both_have_to_be_back() -> None:
    amounts, reclaims = {NODEFS: "25%", CONTAINERFS: "25%"}, {NODEFS: "100", CONTAINERFS: "25%"}
    thresholds = thresholds_of(amounts, {CONTAINERFS: "25%"}, {CONTAINERFS: "0s"}, reclaims)
    pressure, shown = Pressure(), []
    for look, left in enumerate((0, 125, 150, 175)):
        seen = Seen({CONTAINERFS: Observation(300, left)})
        pressure = looked(pressure, thresholds, seen, 10.0, 10.0 * look)
        shown.append(bool(pressure.conditions))
    assert [True, True, True, False] == shown


def test_ep9_that_thresholds_of_containers_do_not_count_is_said_once(caplog) -> None:
    watch = PressureWatch(thresholds_of({CONTAINERFS: "1"}, {}, {}, {}), 5.0, lambda: Seen({}), monotonic=Clock())
    for _ in range(3):
        watch.turn()
    assert [("thresholds ignored, those of nodefs or imagefs count", [CONTAINERFS])] == [
        (r.message, r.signals) for r in caplog.records
    ]
