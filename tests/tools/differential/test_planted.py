"""The search for planted errors leaves nothing behind when it is ended."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from tools.differential import planted
from tools.differential.compare import BATCH, agents_answer, drawn_batch, semantics_of
from tools.differential.errors import ERRORS
from tools.differential.judge import Batch, batch_line
from tools.differential.planted_error import Planted
from tools.differential.targets import TARGETS

SEARCH = textwrap.dedent("""
    import signal, sys, time
    from tools.differential import __main__ as differential, planted
    from tools.differential.errors import ERRORS
    signal.signal(signal.SIGTERM, differential._end)
    class Slow:
        def batch(self, number):
            print("planted", flush=True)
            time.sleep(600)
    planted.found(ERRORS[0], Slow())
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
        assert planted.found(ERRORS[0], answered=None) is None
    finally:
        planted.over.clear()
    assert [] == list(tmp_path.iterdir())


class OneStrange:
    """Answers as the agent's are, but for one history."""

    def __init__(self, strange: int) -> None:
        self._strange = strange
        self._target = next(t for t in TARGETS if t.name == "lease")

    def batch(self, number: int) -> bytes:
        gates, drawn = drawn_batch(self._target, number, BATCH, 1)
        answers = [agents_answer(self._target, history, semantics_of(gates)) for history in drawn]
        if number == self._strange // BATCH:
            answers[self._strange % BATCH] = {"error": "strange"}
        return batch_line(gates, drawn, answers)


@pytest.mark.parametrize(
    ("strange", "histories"),
    [
        pytest.param(0, 1, id="the first history differs"),
        pytest.param(BATCH + 2, BATCH + 3, id="the third of the second batch differs"),
        pytest.param(2 * BATCH, None, id="beyond the most it is looked for in"),
    ],
)
def test_how_many_histories_an_error_needs_is_told(monkeypatch, strange: int, histories: int | None) -> None:
    monkeypatch.setattr(planted, "MOST", 2 * BATCH)
    harmless = Planted("lease", "kubelet/node/lease.py", "FIRST_PAUSE_S = 0.2\n", "FIRST_PAUSE_S = 0.20\n")
    assert histories == planted.found(harmless, OneStrange(strange))


class Late(OneStrange):
    """Of a target that meets a network: the kubelet was late once, or is each time."""

    def __init__(self, times: int) -> None:
        super().__init__(3)
        self._left = times

    def again(self, batch: Batch, at: int) -> bytes:
        self._left -= 1
        right = agents_answer(self._target, batch.histories[at], semantics_of(batch.gates))
        answer = {"error": "strange"} if self._left > 0 else right
        return batch_line(batch.gates, batch.histories[at : at + 1], [answer])


@pytest.mark.parametrize(
    ("times", "histories"),
    [pytest.param(2, None, id="it was late twice"), pytest.param(4, 4, id="it differs each time")],
)
def test_what_a_network_made_late_ends_no_search(monkeypatch, times: int, histories: int | None) -> None:
    monkeypatch.setattr(planted, "MOST", BATCH)
    monkeypatch.setattr(planted, "BY_REAL_TIME", {"lease"})
    harmless = Planted("lease", "kubelet/node/lease.py", "FIRST_PAUSE_S = 0.2\n", "FIRST_PAUSE_S = 0.20\n")
    assert histories == planted.found(harmless, Late(times))
