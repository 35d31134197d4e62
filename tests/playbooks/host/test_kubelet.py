"""The kubelet that waits 10 to 15 s with a new static pod is made to look again, and nothing depends on it."""

import json

import pytest
from readygate_scheduler import kubelet

from tests.playbooks.host.world import MIRROR, OLD_COMMAND, UID, RecordingIO, manifest

FOR_EVER_S = 60.0
REFUSED = (1, "Operation cannot be fulfilled: Precondition failed: UID in precondition: 9e8ede64")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(kubelet, "EVERY_S", 0.0)


def asked(world):
    return [argv for argv in world.calls if argv[0] == "kubectl"]


def test_a_kubelet_that_waits_looks_again_when_the_earlier_pods_mirror_is_changed(world):
    world.slow_s = FOR_EVER_S
    assert world.change().apply(world.job(mirror=MIRROR))["outcome"] == "confirmed"
    get, patch, *_ = asked(world)
    where = ["kubectl", "--namespace=kube-system"]
    assert [*where, "get", "pod", MIRROR[-1], "--output=jsonpath={.metadata.uid}"] == get
    assert [*where, "patch", "pod", MIRROR[-1]] == patch[:-1]
    assert {"uid": UID, "annotations": {kubelet.ANNOTATION: "15"}} == json.loads(patch[-1][8:])["metadata"]


def test_so_does_one_that_is_given_the_earlier_manifest_back(world):
    class SlowAfterwards(RecordingIO):
        def rename(self, old, new):
            back = new == str(world.target) and old.endswith("before")
            world.slow_s = FOR_EVER_S if back else world.slow_s
            super().rename(old, new)

    verdict = world.change(SlowAfterwards(world)).apply(world.job(works=False, mirror=MIRROR))
    assert ("put-back", True) == (verdict["outcome"], "back in place and works" in verdict["cause"])
    assert [OLD_COMMAND] == world.runs()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param((1, "connection refused"), id="an API server that is away"),
        pytest.param((124, "kubectl took longer than 3.0 s"), id="one that hangs"),
        pytest.param(REFUSED, id="the mirror pod is the new one's"),
    ],
)
def test_it_is_asked_three_times_at_most_and_the_change_ends_as_ever(world, answer):
    world.slow_s, world.api = 0.5, answer
    assert world.change().apply(world.job(mirror=MIRROR))["outcome"] == "confirmed"
    assert len(asked(world)) <= 3


def test_while_a_scheduler_runs_nobody_is_asked(world):
    job = world.job(mirror=MIRROR)
    content = manifest(OLD_COMMAND) + "\n"  # the same, written otherwise: no process starts
    job |= {"wanted": content, "command": OLD_COMMAND, "restarts": False, "configz": [], "files": {}, "trial": []}

    world.still = True
    assert world.change().apply(job)["outcome"] == "confirmed"
    assert [] == asked(world)


def test_a_change_that_an_earlier_release_has_left_open_is_ended(world):
    class Killed(BaseException):
        pass

    class Dying(RecordingIO):
        def rename(self, old, new):
            super().rename(old, new)
            if new == str(world.target):
                raise Killed

    job = world.job()
    del job["mirror"]
    with pytest.raises(Killed):
        world.change(Dying(world)).apply(job)
    assert "confirmed" == world.change().recover()["outcome"]
