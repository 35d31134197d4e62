"""Results of probes that outlive the agent (row M43)."""

import json
import logging
from pathlib import Path
from zlib import crc32

import pytest

from agent.model import ProbeType, Result
from agent.probe.streak import Kept, Streak
from agent.store.results import ResultsFile

KEPT = {
    ("c://1", ProbeType.READINESS): Kept(Result.SUCCESS, Streak(Result.FAILURE, 2), on_hold=False),
    ("c://1", ProbeType.LIVENESS): Kept(Result.FAILURE, Streak(Result.FAILURE, 0), on_hold=True),
    ("c://2", ProbeType.STARTUP): Kept(None, Streak(), on_hold=False),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "root" / "probe_results.json"


def made(path: Path, kept: object = None, boot: str = "b1") -> ResultsFile:
    return ResultsFile(path, lambda: {} if kept is None else kept, boot=lambda: boot)


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


def document(**fields: object) -> bytes:
    data = "[]"
    return json.dumps(
        {"version": 1, "boot_id": "b1", "checksum": crc32(data.encode()), "data": data, **fields}
    ).encode()


@pytest.mark.parametrize(
    ("found", "why"),
    [
        pytest.param(b"", "does not parse: ", id="empty"),
        pytest.param(document(version=2), "is of version 2, ours is 1", id="of another version"),
        pytest.param(document(checksum=1), "is damaged: its checksum is another", id="a bit has changed"),
        pytest.param(
            document(data='[["c://1","Odd",0,0,1,false]]', checksum=crc32(b'[["c://1","Odd",0,0,1,false]]')),
            "does not parse: ",
            id="of another form",
        ),
        pytest.param(b'{"version":1,"data":"\xff"}', "does not parse: ", id="no text"),
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
