"""Rows S25 to S28, S66 and MP: a static pod's status goes to its mirror, which is never deleted."""

from dataclasses import replace

import pytest

from agent.wire.model import Pod, PodPhase
from tests.agent.kubelet.status.builders import NOW, make_pod, make_status, running
from tests.agent.kubelet.status.scene import Scene

MIRRORED = {"kubernetes.io/config.source": "file", "kubernetes.io/config.mirror": "0123"}
STATIC = make_pod("c1", uid="static-1", static=True)
MIRROR = make_pod("c1", uid="mirror-1", static=True, mirror=True, annotations=MIRRORED)
RUNNING = make_status(phase=PodPhase.RUNNING, container_statuses=(running("c1"),))


def scene(mirror: Pod | None = MIRROR, *, seen: bool = True) -> Scene:
    """The static pod is known; `seen`: so is its mirror, which the API server has."""
    made = Scene(STATIC)
    made.client.pod = mirror
    if mirror is not None and seen:
        made.pods[mirror.uid] = mirror
    return made


def test_s25_the_status_of_a_static_pod_goes_to_its_mirror() -> None:
    made = scene()
    assert (True, "GET PATCH") == (made.set(RUNNING), made.sync())
    assert "mirror-1" == made.client.bodies[0]["metadata"]["uid"]
    assert PodPhase.RUNNING == made.client.pod.status.phase


def test_s26_it_is_written_once() -> None:
    made = scene()
    made.set(RUNNING)
    made.sync()
    assert ("", "") == (made.sync(), made.sync(everything=False))


def test_mp1_without_a_mirror_nothing_is_asked() -> None:
    made = scene(None)
    made.set(RUNNING)
    assert ("", "") == (made.sync(), made.sync(everything=True))


def test_mp2_a_mirror_that_comes_later_gets_it() -> None:
    made = scene(seen=False)
    made.set(RUNNING)
    assert "" == made.sync()
    made.pods[MIRROR.uid] = MIRROR
    assert "GET PATCH" == made.sync()


def test_s27_a_mirror_that_was_made_anew_gets_it_again() -> None:
    made = scene()
    made.set(RUNNING)
    made.sync()
    del made.pods[MIRROR.uid]
    made.client.pod = replace(MIRROR, uid="mirror-2")
    made.pods["mirror-2"] = made.client.pod
    assert ("GET PATCH", "mirror-2") == (made.sync(), made.client.bodies[-1]["metadata"]["uid"])


def test_s28_the_pod_is_known_by_the_uid_of_its_mirror() -> None:
    made = scene()
    made.set(RUNNING)
    assert made.manager.pod_status("mirror-1") == made.manager.pod_status("static-1")
    assert made.manager.pod_status("static-1") is not None


def test_mp3_what_somebody_writes_into_a_mirror_is_put_right() -> None:
    made = scene()
    made.set(RUNNING)
    made.sync()
    made.client.pod = made.pods[MIRROR.uid] = replace(MIRROR, status=make_status(phase=PodPhase.PENDING))
    assert "GET PATCH" == made.sync(everything=True)
    assert PodPhase.RUNNING == made.client.pod.status.phase


@pytest.mark.parametrize("everything", [False, True], ids=["in a batch", "by the ten-second tick"])
def test_s66_a_mirror_that_is_being_deleted_is_not_deleted_by_us(everything: bool) -> None:
    ending = replace(MIRROR, deletion_timestamp=NOW, status=make_status(phase=PodPhase.FAILED))
    made = scene(ending)
    made.set(replace(RUNNING, phase=PodPhase.FAILED))
    made.manager.terminate_pod(STATIC)
    assert "DELETE" not in made.sync(everything=everything).split()


def test_mp4_the_start_time_is_the_mirrors() -> None:
    made = scene(replace(MIRROR, status=make_status(start_time=NOW - 500)))
    made.set(RUNNING)
    assert NOW - 500 == made.status.start_time


def test_s101_a_static_pod_that_finished_may_start_again() -> None:
    made = scene()
    made.set(replace(RUNNING, phase=PodPhase.SUCCEEDED))
    made.manager.terminate_pod(STATIC)
    assert made.finished
    made.set(RUNNING)
    assert (False, PodPhase.RUNNING) == (made.finished, made.status.phase)


def test_a_pod_of_the_same_name_that_is_no_mirror_is_not_written() -> None:
    made = scene(make_pod("c1", uid="other"), seen=False)
    made.pods[MIRROR.uid] = MIRROR
    made.set(RUNNING)
    assert ("GET", None) == (made.sync(), made.status)
