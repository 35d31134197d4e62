"""What docs/caps.md shows of `readygate replay` is what it prints, and its recording is one that `record` makes."""

import re
import shlex
from pathlib import Path

from cli.__main__ import main
from tests.cli.replay import tapes
from tests.cli.replay.test_replay import CAPPED, FOUR_FAIL

CAPS = (Path(__file__).resolve().parents[3] / "docs" / "caps.md").read_text()
CONFIGURATION = re.search(r"^# without-cap.yaml\n(.*?)^```", CAPS, re.DOTALL | re.MULTILINE)
SHOWN = re.search(r"^\$ (readygate replay .*?)\n(.*?)^```", CAPS, re.DOTALL | re.MULTILINE)
assert CONFIGURATION is not None
assert SHOWN is not None
REPLAY, PRINTED = SHOWN.groups()


def test_what_is_shown_is_what_is_printed(tmp_path, capsys, monkeypatch):
    """Of ten nodes four fail one by one; the configuration of the recording closes three of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "104")
    tapes.file_of(tmp_path / "evening.tape", [*FOUR_FAIL, tapes.end(60)], CAPPED)
    (tmp_path / "without-cap.yaml").write_text(CONFIGURATION[1])
    code = main(shlex.split(REPLAY.removeprefix("readygate ")))
    assert (1, PRINTED, "") == (code, *capsys.readouterr())
