"""How long a new static pod of the extender is waited for: not once its process has ended, and never silently. And what
is told of it then.
"""

import importlib.util
import shutil

import pytest
from readygate_scheduler.host_io import HostIO
from readygate_scheduler.jobs import digest

from tests.playbooks.rendering import ROLES

PROGRAM = ROLES / "readygate_extender" / "files" / "static_pod.py"
SPEC = importlib.util.spec_from_file_location("static_pod", PROGRAM)
static_pod = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(static_pod)

LIMIT_S, SILENT_S = 30, 6
READY, NOT_READY, SILENT = static_pod.READY, static_pod.NOT_READY, static_pod.SILENT
REFUSED = 400  # as kube-scheduler does at its own port
NOBODY, NEW, OTHER = set(), {7, 8}, {9}
ENDED, LATE, UNHEARD = "has ended", "did not answer within 30 s", "no extender has answered for 6 s"
UNSTARTED = "the kubelet has not started it for 15 s, and no extender answers"


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        pytest.param([(5, SILENT, NOBODY)], None, id="within the silence it is waited for"),
        pytest.param([(14, SILENT, NOBODY)], None, id="a kubelet that is busy starts it a little later"),
        pytest.param([(15, SILENT, NOBODY)], UNSTARTED, id="a kubelet that starts nothing"),
        pytest.param([(9, SILENT, NEW), (10, SILENT, NEW)], None, id="one that has just been started is not heard yet"),
        pytest.param([(9, SILENT, NEW), (11, SILENT, NEW)], UNHEARD, id="for two seconds"),
        pytest.param([(1, SILENT, NEW), (6, SILENT, NEW)], UNHEARD, id="a process that answers nothing"),
        pytest.param([(1, REFUSED, NEW), (6, REFUSED, NEW)], UNHEARD, id="a port that is somebody else's"),
        pytest.param(
            [(4, READY, NOBODY), (5, SILENT, NEW), (9, SILENT, NEW)], None, id="it begins as the earlier one ends"
        ),
        pytest.param([(4, READY, NOBODY), (5, SILENT, NEW), (10, SILENT, NEW)], UNHEARD, id="and lasts no longer then"),
        pytest.param([(5, NOT_READY, NEW), (10, NOT_READY, NEW)], None, id="one that is not ready yet is no silence"),
        pytest.param([(5, NOT_READY, NEW), (30, NOT_READY, NEW)], LATE, id="but it does not last for ever"),
        pytest.param(
            [(5, NOT_READY, NOBODY), (15, NOT_READY, NOBODY)], UNSTARTED, id="not ready, of nobody knows whom"
        ),
        pytest.param([(29, READY, NOBODY), (30, READY, NOBODY)], LATE, id="a kubelet that does not take the manifest"),
        pytest.param([(1, SILENT, NEW), (2, SILENT, NOBODY)], ENDED, id="a process that ends"),
        pytest.param([(1, SILENT, NEW), (2, SILENT, OTHER)], ENDED, id="and that the kubelet has started again"),
        pytest.param([(1, SILENT, NEW), (2, NOT_READY, {8, 9})], None, id="a worker that its master replaces"),
    ],
)
def test_it_is_waited_for_while_it_may_come(looks, expected):
    patience = static_pod.Patience(0, LIMIT_S, SILENT_S)
    causes = [patience.cause(*look) for look in looks]
    assert [None] * (len(looks) - 1) == causes[:-1]
    assert (causes[-1] or "").endswith(expected or "")
    assert (expected is None) == (causes[-1] is None)


class NeverArmed:
    def disarm(self):
        """There is no timer."""


@pytest.mark.parametrize(
    ("log", "told"),
    [
        pytest.param("starts\nport 10259 is taken\n", "starts | port 10259 is taken", id="its last words"),
        pytest.param("", "its log is empty", id="nothing was said"),
        pytest.param(None, "its container was never started", id="there is no log"),
    ],
)
def test_its_last_lines_are_read_before_the_kubelet_removes_them_with_its_pod(tmp_path, monkeypatch, log, told):
    logs, manifest = tmp_path / "pods", tmp_path / "manifest.yaml"
    monkeypatch.setattr(static_pod, "LOGS", logs)
    if log is not None:
        where = logs / "readygate-system_readygate-extender-a_9e8e" / "extender"
        where.mkdir(parents=True)
        (where / "0.log").write_text(log)

    class Removing(static_pod.Swap):
        def _after(self, job, wait):  # noqa: ARG002 - as the program's
            shutil.rmtree(logs, ignore_errors=True)
            return "answers"

    swap = Removing(tmp_path, HostIO(), NeverArmed())
    swap.pending.mkdir()
    swap.earlier.write_text("earlier")
    manifest.write_text("new")
    job = {"manifest": str(manifest), "wanted": digest(b"new"), "expected": digest(b"earlier")}
    verdict = swap._back(job, "it ended")
    assert (True, "earlier", True) == (verdict["back"], manifest.read_text(), told in verdict["cause"]), verdict
