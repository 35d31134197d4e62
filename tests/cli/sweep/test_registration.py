"""`readygate unregistered`: checks whether kube-scheduler called an extender about a pod that it placed."""

import pytest

from cli.__main__ import main
from cli.sweep import registration
from tests.cli.served import Extender
from tools.kit.cases import cases

POD = "readygate-system/readygate-uninstall-x7"
NOT_ASKED = {"namespace": "readygate-system", "name": "readygate-uninstall-x7"}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(registration, "BETWEEN_S", 0.0)


def replica(name, **told):
    return Extender(name, **{f"pods/{POD}": NOT_ASKED | told})


SILENT = Extender("e-2", **{f"pods/{POD}": (500, b"")})


@cases(
    "extenders, expected",
    ("no call", [replica("e-1"), replica("e-2")], (0, "no kube-scheduler calls the extenders")),
    ("no extender runs", [], (0, "no extender runs")),
    ("one call", [replica("e-1"), replica("e-2", attempts=1)], (1, "kube-scheduler still calls e-2: remove")),
    ("a call without a verdict", [replica("e-1", unanswered=2)], (1, "still calls e-1")),
    ("an extender does not answer", [replica("e-1"), SILENT], (3, "helm uninstall --no-hooks")),
    ("one call, and another extender does not answer", [replica("e-1", attempts=1), SILENT], (1, "still calls e-1")),
)
def test_extenders_may_be_removed_when_no_scheduler_calls_them(capsys, cluster, extenders, expected):
    cluster.extenders = extenders
    code = main(["unregistered", POD])
    told = capsys.readouterr()
    assert (code, expected[1] in told.out + told.err) == (expected[0], True), told


def test_a_call_that_shows_late_is_waited_for(capsys, cluster, monkeypatch):
    late = replica("e-1")
    cluster.extenders = [late]

    def until_then(_seconds):
        late.answers[f"pods/{POD}"] |= {"attempts": 1}

    monkeypatch.setattr(registration.time, "sleep", until_then)
    assert main(["unregistered", POD]) == 1
    assert "still calls e-1" in capsys.readouterr().err


@pytest.mark.parametrize("named", ["readygate-uninstall-x7", "a/b/c", "/b", "a/"])
def test_a_pod_must_be_named_with_its_namespace(capsys, named):
    assert main(["unregistered", named]) == 2
    assert "NAMESPACE/NAME" in capsys.readouterr().err
