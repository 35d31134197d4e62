"""`readygate replay` prints what docs/caps.md shows, on a recording like those of `readygate record`."""

import re
import shlex
from pathlib import Path

from cli.__main__ import main
from tests.cli.replay import recordings
from tests.cli.replay.test_replay import CAPPED, FOUR_FAIL

CAPS = (Path(__file__).resolve().parents[3] / "docs" / "caps.md").read_text()
CONFIGURATION = re.search(r"^# without-cap.yaml\n(.*?)^```", CAPS, re.DOTALL | re.MULTILINE)
SHOWN = re.search(r"^\$ (readygate replay .*?)\n(.*?)^```", CAPS, re.DOTALL | re.MULTILINE)
assert CONFIGURATION is not None
assert SHOWN is not None
REPLAY, PRINTED = SHOWN.groups()


def test_a_recording_of_several_days_shows_the_day_of_a_difference(tmp_path, capsys):
    recordings.file_of(tmp_path / "days.recording", [*FOUR_FAIL, recordings.end(2 * 86_400)], CAPPED)
    (tmp_path / "without-cap.yaml").write_text(CONFIGURATION[1])
    main(["replay", str(tmp_path / "days.recording"), "--config", str(tmp_path / "without-cap.yaml")])
    out = capsys.readouterr().out
    assert re.search(r"^AT \(UTC\) .*\n21 Sep 14:14:00  the rest  n-03 ", out, re.MULTILINE), out


def test_documented_output_is_what_is_printed(tmp_path, capsys, monkeypatch):
    """Of ten nodes four fail one by one; the configuration of the recording closes three of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "104")
    recordings.file_of(tmp_path / "evening.recording", [*FOUR_FAIL, recordings.end(60)], CAPPED)
    (tmp_path / "without-cap.yaml").write_text(CONFIGURATION[1])
    code = main(shlex.split(REPLAY.removeprefix("readygate ")))
    assert (1, PRINTED, "") == (code, *capsys.readouterr())
