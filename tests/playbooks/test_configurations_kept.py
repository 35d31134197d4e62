"""Which configurations stay in the cluster after a roll-out: each that `kubectl rollout undo` may go back to."""

from typing import Any

import pytest

from tests.playbooks.modules import module
from tests.playbooks.test_rollout import NEW, WELL, look

ROLLOUT = module("readygate_objects", "readygate_rollout")
NAME = "readygate-extender"


def revision(number: int, config: str) -> dict[str, Any]:
    volumes = [{"name": "account"}, {"name": "config", "configMap": {"name": config}}]
    template = {"metadata": {"labels": {"app.kubernetes.io/name": NAME}}, "spec": {"volumes": volumes}}
    return {"revision": number, "data": {"spec": {"template": {"$patch": "replace", **template}}}}


class Cluster:
    """kubectl of a cluster that has these revisions of the DaemonSet, and these ConfigMaps."""

    def __init__(self, revisions: list[dict[str, Any]], config_maps: list[str]) -> None:
        self._revisions = revisions
        self.config_maps = config_maps
        self.refuses = ""

    def get(self, kind: str, selector: str) -> dict[str, Any]:
        assert f"--selector=app.kubernetes.io/name={NAME}" == selector
        if kind == "controllerrevisions":
            return {"items": self._revisions}
        assert kind == "configmaps"
        return {"items": [{"metadata": {"name": name}} for name in self.config_maps]}

    def run(self, verb: str, kind: str, option: str, *names: str) -> str:
        if self.refuses:
            raise OSError(self.refuses)
        assert ("delete", "configmap", "--ignore-not-found") == (verb, kind, option)
        self.config_maps = [name for name in self.config_maps if name not in names]
        return ""


OTHERS = [f"{NAME}-rules", f"{NAME}-0123456789-mine", "grafana"]
A, B, C, D = (f"{NAME}-{letter * 10}" for letter in "abcd")


@pytest.mark.parametrize(
    ("revisions", "found", "expected"),
    [
        pytest.param([(1, A), (2, B)], [A, B], [A, B], id="this version's and that of the one before"),
        pytest.param(
            [(1, A), (2, B), (3, C)],
            [A, B, C],
            [A, B, C],
            id="those of versions before that, to which --to-revision may go",
        ),
        pytest.param(
            [(1, A), (3, C), (4, B)],
            [A, B, C],
            [A, B, C],
            id="that of the last good one, where two roll-outs have failed since",
        ),
        pytest.param([(2, B), (3, C)], [A, B, C], [B, C], id="not that of a version the history has forgotten"),
        pytest.param([(1, A), (2, B)], [A, B, D], [A, B], id="not that of a trial that was refused"),
        pytest.param([(1, NAME), (2, B)], [NAME, B], [NAME, B], id="the one of a version that named all of them alike"),
        pytest.param([], [A], [A], id="all, where no history is seen"),
        pytest.param([(2, B)], [A, B, *OTHERS], [B, *OTHERS], id="what somebody has put there under our label"),
    ],
)
def test_what_a_revision_of_the_history_names_is_kept_and_nothing_else(revisions, found, expected):
    cluster = Cluster([revision(*each) for each in revisions], found)
    ROLLOUT.Watched(cluster, NAME).clear()
    assert expected == cluster.config_maps


def test_a_roll_out_that_has_ended_well_does_not_fail_of_what_cannot_be_deleted(monkeypatch):
    """The API server is away for a moment, say: the next roll-out deletes it."""
    cluster = Cluster([revision(1, B)], [A, B])
    cluster.refuses = "connection refused"
    watched = ROLLOUT.Watched(cluster, NAME)
    monkeypatch.setattr(watched, "look", lambda _monotonic, _wall: look((3, NEW, WELL)))
    given = {"memory": {}, "said": "", "seconds": 0.0, "timeout_seconds": 0, "min_available_percent": 100}
    assert "done" == ROLLOUT.watch(watched, given)["verdict"]
    assert [A, B] == cluster.config_maps
