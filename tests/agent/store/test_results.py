"""Results of probes that outlive the agent (row M43)."""

import json
import logging
from pathlib import Path
from zlib import crc32

import pytest

from agent.probe.streak import Kept, Streak
from agent.store.results import ResultsFile
from agent.wire.model import ProbeType, Result
from tools.kit.clock import Clock

KEPT = {
    ("c://1", ProbeType.READINESS): Kept(Result.SUCCESS, Streak(Result.FAILURE, 2), on_hold=False),
    ("c://1", ProbeType.LIVENESS): Kept(Result.FAILURE, Streak(Result.FAILURE, 0), on_hold=True),
    ("c://2", ProbeType.STARTUP): Kept(None, Streak(), on_hold=False),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "root" / "probe_results.json"


def made(path: Path, kept: object = None, boot: str = "b1", clock: Clock | None = None) -> ResultsFile:
    clock = clock or Clock(0.0)
    return ResultsFile(path, lambda: {} if kept is None else kept, boot=lambda: boot, since_boot=clock)


def test_what_was_kept_is_found_by_the_next_agent(path: Path) -> None:
    made(path, KEPT).turn()
    assert KEPT == made(path).restored
    assert {} == made(path, boot="b2").restored, "of another boot"


def test_it_is_written_when_it_has_changed_and_at_the_end(path: Path) -> None:
    kept = dict(KEPT)
    file = made(path, kept)
    file.turn()
    path.unlink()
    file.turn()
    assert not path.exists()
    kept.popitem()
    file.start()
    file.stop()
    assert kept == made(path).restored


def test_a_disk_that_takes_nothing_is_one_line_until_it_does(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.write_text("no folder")
    file = made(path, KEPT)
    for _ in range(3):
        file.turn()
    assert ["results of probes are not known", "results of probes are not kept"] == [r.message for r in caplog.records]
    path.parent.unlink()
    file.turn()
    assert KEPT == made(path).restored


ODD = '{"since_boot":0.0,"rows":[["c://1","Odd",0,0,1,false]]}'
AGES = [
    pytest.param(ProbeType.LIVENESS, Kept(Result.FAILURE, Streak(Result.FAILURE, 0), True), False, id="it failed"),
    pytest.param(ProbeType.LIVENESS, Kept(None, Streak(Result.FAILURE, 2), False), False, id="failures that count"),
    pytest.param(ProbeType.LIVENESS, Kept(Result.SUCCESS, Streak(Result.SUCCESS, 1), False), True, id="it passed"),
    pytest.param(ProbeType.STARTUP, Kept(Result.FAILURE, Streak(Result.FAILURE, 0), True), False, id="startup failed"),
    pytest.param(ProbeType.STARTUP, Kept(Result.SUCCESS, Streak(Result.SUCCESS, 0), True), True, id="it has started"),
    pytest.param(ProbeType.READINESS, Kept(Result.FAILURE, Streak(Result.FAILURE, 3), False), True, id="not ready"),
    pytest.param(ProbeType.READINESS, Kept(Result.SUCCESS, Streak(Result.SUCCESS, 1), False), True, id="ready"),
]


@pytest.mark.parametrize(("kind", "kept", "outlives"), AGES)
def test_what_would_end_a_container_holds_for_ten_minutes_without_an_agent(
    path: Path, kind: ProbeType, kept: Kept, outlives: bool
) -> None:
    clock, rows = Clock(1000.0), {("c://1", kind): kept}
    made(path, rows, clock=clock).turn()
    clock.time = 1600.0
    assert rows == made(path, clock=clock).restored
    clock.time = 1601.0
    assert (rows if outlives else {}) == made(path, clock=clock).restored


def test_what_was_found_too_long_ago_is_one_line(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock(1000.0)
    made(path, KEPT, clock=clock).turn()
    clock.time = 5000.0
    assert [("c://1", ProbeType.READINESS), ("c://2", ProbeType.STARTUP)] == list(made(path, clock=clock).restored)
    (line,) = caplog.records
    assert ("failures of probes are too old to count", 4000, 1) == (line.message, line.age_s, line.probes)


def test_the_age_is_that_of_the_last_word_of_an_agent_that_was_there(path: Path) -> None:
    """A container may be a long time ending: what is found of it does not change meanwhile."""
    clock = Clock(1000.0)
    file = made(path, KEPT, clock=clock)
    written = []
    for clock.time in range(1000, 1180):
        file.turn()
        if path.exists():
            written.append(clock.time)
            path.unlink()
    assert [1000, 1060, 1120] == written


def document(**fields: object) -> bytes:
    data = '{"since_boot":0.0,"rows":[]}'
    return json.dumps(
        {"version": 2, "boot_id": "b1", "checksum": crc32(data.encode()), "data": data, **fields}
    ).encode()


@pytest.mark.parametrize(
    ("found", "why"),
    [
        pytest.param(b"", "does not parse: ", id="empty"),
        pytest.param(document(version=1), "is of version 1, ours is 2", id="of another version"),
        pytest.param(document(checksum=1), "is damaged: its checksum is another", id="a bit has changed"),
        pytest.param(
            document(data=ODD, checksum=crc32(ODD.encode())),
            "does not parse: ",
            id="of another form",
        ),
        pytest.param(b'{"version":2,"data":"\xff"}', "does not parse: ", id="no text"),
    ],
)
def test_what_cannot_be_used_is_ignored_with_one_line(
    path: Path, found: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    path.write_bytes(found)
    assert {} == made(path).restored
    (line,) = caplog.records
    assert (logging.WARNING, "results of probes are not known") == (line.levelno, line.message)
    assert line.error.startswith(why)
