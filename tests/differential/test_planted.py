"""The search for planted errors leaves nothing behind when it is ended."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from tests.differential import planted

SEARCH = textwrap.dedent("""
    import signal, sys, time
    from tests.differential import __main__ as differential, planted
    signal.signal(signal.SIGTERM, differential._end)
    class Slow:
        def batch(self, number):
            print("planted", flush=True)
            time.sleep(600)
    planted.found(planted.ERRORS[0], Slow())
""")


def test_a_search_that_is_told_to_end_takes_its_copy_of_the_agent_with_it(tmp_path: Path) -> None:
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", SEARCH], env=environ, stdout=subprocess.PIPE, text=True) as search:
        assert search.stdout is not None
        assert "planted\n" == search.stdout.readline()
        assert 1 == len(list(tmp_path.glob("readygate-planted-*")))
        search.send_signal(signal.SIGTERM)
        assert 128 + signal.SIGTERM == search.wait(60)
    assert [] == list(tmp_path.glob("readygate-planted-*"))


def test_what_was_not_begun_yet_is_not_begun(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    planted.over.set()
    try:
        assert not planted.found(planted.ERRORS[0], answered=None)
    finally:
        planted.over.clear()
    assert [] == list(tmp_path.iterdir())
