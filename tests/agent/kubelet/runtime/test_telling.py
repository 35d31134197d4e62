"""What the process runtime tells by itself, with real processes."""

import pytest

from agent.kubelet.runtime.base import StartError
from agent.kubelet.runtime.process import ProcessRuntime
from agent.wire.containers import ContainerPhase, EventKind
from agent.wire.model import Container
from tests.agent.kubelet.status.builders import make_pod
from tools.kit.waiting import wait_until

POD = make_pod("c")


class Told(list):
    """(kind, container id, phases of the pod's containers as the runtime has them at that moment)."""

    def take(self, event):
        phases = [container.phase for container in self.runtime.pod(event.uid).containers]
        self.append((event.kind, event.container_id, phases))


@pytest.fixture
def told(tmp_path):
    told = Told()
    told.runtime = ProcessRuntime(tmp_path, "127.21.10.0/24", on_event=told.take)
    told.runtime.start()
    yield told
    told.runtime.stop()


def test_each_thing_once_and_as_it_is_then(told):
    told.runtime.prepare_pod(POD)
    cid = told.runtime.start_container(POD, Container("c", command=("/bin/true",)), 0)
    wait_until(lambda: len(told) == 3, timeout_s=30)
    told.runtime.remove_container(cid)
    told.runtime.remove_pod(POD.uid)
    told.runtime.remove_pod(POD.uid)
    sandbox = f"process://{POD.uid}"
    assert [
        (EventKind.STARTED, sandbox, []),
        (EventKind.STARTED, cid, [ContainerPhase.RUNNING]),
        (EventKind.STOPPED, cid, [ContainerPhase.EXITED]),
        (EventKind.DELETED, cid, []),
        (EventKind.DELETED, sandbox, []),
    ] == told


def test_a_container_that_could_not_be_started_has_ended(told):
    with pytest.raises(StartError):
        told.runtime.start_container(POD, Container("c", command=("/no/such/file",)), 0)
    (instance,) = told.runtime.pod(POD.uid).containers
    assert (EventKind.STOPPED, instance.id, [ContainerPhase.EXITED]) == told[-1]


def test_lists_hold_every_pod_or_the_one_that_is_asked_for(told):
    other = make_pod("c", uid="other")
    for pod in (POD, other):
        told.runtime.prepare_pod(pod)
    assert (told.runtime.pod(POD.uid), told.runtime.pod("other")) == told.runtime.list_pods()
    assert ((told.runtime.pod("other"),), ()) == (told.runtime.list_pods("other"), told.runtime.list_pods("nobody"))
