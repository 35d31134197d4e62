"""Which instance of a container is the newest."""

from agent.wire.containers import ContainerPhase, RuntimeContainer, RuntimePod


def instance(id_: str, restart_count: int, created_at: float) -> RuntimeContainer:
    return RuntimeContainer(id_, "c", ContainerPhase.EXITED, created_at, restart_count=restart_count)


def test_the_one_that_was_restarted_more_often_is_newer_though_the_clock_was_set_back_before_it() -> None:
    pod = RuntimePod("u", containers=(instance("first", 0, 5000.0), instance("second", 1, 1400.0)))
    assert ["second", "first"] == [found.id for found in pod.instances("c")]


def test_of_two_that_were_restarted_as_often_the_one_made_later_is_newer() -> None:
    pod = RuntimePod("u", containers=(instance("first", 0, 1.0), instance("second", 0, 2.0)))
    assert "second" == (pod.newest("c") or pod.containers[0]).id
