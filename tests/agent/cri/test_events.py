"""What a container runtime tells by itself, and what becomes of it where it does not (rows CR20-CR23)."""

import logging
from collections.abc import Iterator

import pytest

from agent.cri import api_pb2 as cri
from agent.cri.base import CriError, Reader
from agent.cri.connect import connect
from agent.cri.convert import event_of
from agent.cri.events import RuntimeEvents
from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.events import PodEvent
from agent.kubelet.pleg.generator import EventGenerator
from agent.kubelet.pleg.relist import EVENTED, GENERIC
from agent.wire.containers import ContainerEvent, EventKind
from agent.wire.semantics import Semantics
from tools.fakes.cri import Runtime
from tools.kit.waiting import wait_until

PATIENT_S = 60.0


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    made = Runtime(tmp_path_factory.mktemp("cri"))
    made.start()
    yield made
    made.process.kill()


@pytest.fixture
def reader(runtime: Runtime) -> Iterator[Reader]:
    found = connect(runtime.socket, deadline_s=PATIENT_S)
    yield found
    found.close()


def told(kind: str, id_: str, uid: str = "u") -> dict[str, object]:
    sandbox = {"id": "s1", "metadata": {"uid": uid}}
    return {"containerId": id_, "containerEventType": f"CONTAINER_{kind}_EVENT", "podSandboxStatus": sandbox}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param((0, "c", "u"), ContainerEvent(EventKind.CREATED, "u", "rt://c"), id="CR20: made"),
        pytest.param((1, "c", "u"), ContainerEvent(EventKind.STARTED, "u", "rt://c"), id="CR20: started"),
        pytest.param((2, "c", "u"), ContainerEvent(EventKind.STOPPED, "u", "rt://c"), id="CR20: ended"),
        pytest.param((3, "c", "u"), ContainerEvent(EventKind.DELETED, "u", "rt://c"), id="CR20: gone"),
        pytest.param((9, "c", "u"), None, id="CR21: a kind that is newer than we are"),
        pytest.param((1, "", "u"), None, id="CR21: of no container"),
        pytest.param((1, "c", ""), None, id="CR21: of no pod"),
    ],
)
def test_an_event(message: tuple[int, str, str], expected: ContainerEvent | None) -> None:
    kind, id_, uid = message
    answer = cri.ContainerEventResponse(container_id=id_, container_event_type=kind)
    answer.pod_sandbox_status.metadata.uid = uid
    assert expected == event_of(answer, "rt")


def test_cr22_events_are_taken_as_they_come_and_again_when_they_have_ended(runtime: Runtime, reader: Reader) -> None:
    taken: list[ContainerEvent] = []
    events = RuntimeEvents(reader, taken.append)
    runtime.says(GetContainerEvents=[told("STARTED", "c1")])
    events.start()
    wait_until(lambda: len(taken) == 1, "the first", timeout_s=PATIENT_S)
    assert events.come(0.0)
    runtime.says(GetContainerEvents=[told("STARTED", "c1"), told("STOPPED", "c1"), None])
    wait_until(lambda: len(taken) >= 2, "the second, and the end", timeout_s=PATIENT_S)
    runtime.says(GetContainerEvents=[told("DELETED", "c1")])
    wait_until(lambda: taken[-1].kind is EventKind.DELETED, "the third, in a new stream", timeout_s=PATIENT_S)
    assert [(EventKind.STARTED, "u", "fake://c1"), (EventKind.STOPPED, "u", "fake://c1")] == [
        (event.kind, event.uid, event.container_id) for event in taken[:2]
    ]
    assert events.healthy(0.0)
    events.stop()
    assert (False, False) == (events.come(0.0), events.healthy(0.0)), "a silent stream keeps nobody"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param("UNIMPLEMENTED:unknown method", "not offered", id="a runtime of old"),
        pytest.param("garbage", "the answer is no CRI", id="bytes of no event"),
        pytest.param("UNKNOWN:no events for you", "no events for you", id="an error of its own"),
    ],
)
def test_cr23_where_they_do_not_come_lists_are_all_there_is(
    runtime: Runtime, reader: Reader, caplog: pytest.LogCaptureFixture, answer: str, says: str
) -> None:
    runtime.says(GetContainerEvents=answer, ListPodSandbox={}, ListContainers={})
    events = RuntimeEvents(reader, lambda _event: None)
    with caplog.at_level(logging.WARNING):
        assert [1.0] * 3 == [events.turn() for _ in range(3)]
    lines = [(record.message, record.error) for record in caplog.records]
    assert (1, "no events of the container runtime") == (len(lines), lines[0][0])
    assert says in lines[0][1]
    times = iter(range(100))
    generator = EventGenerator(
        reader,
        Cache(newest_wins=True),
        lambda _event: True,
        events_come=events.come,
        semantics=Semantics(),
        monotonic=lambda: float(next(times)),
    )
    assert (True, EVENTED) == (generator.evented, generator._relist.pace)
    for _ in range(20):
        generator.turn()
    assert (False, GENERIC) == (generator.evented, generator._relist.pace)


def test_what_is_told_is_looked_at_and_delivered(runtime: Runtime, reader: Reader) -> None:
    """The stream, the look at the pod, the cache and who is told, together."""
    sandbox = {"id": "s1", "metadata": {"name": "web", "namespace": "ns", "uid": "u"}, "createdAt": "1"}
    labels = {"io.kubernetes.pod.uid": "u", "io.kubernetes.container.name": "c"}
    one = {
        "id": "c1",
        "metadata": {"name": "c"},
        "image": {"image": "i"},
        "labels": labels,
        "state": "CONTAINER_RUNNING",
    }
    runtime.says(
        ListPodSandbox={"items": [sandbox]},
        ListContainers={"containers": [one]},
        PodSandboxStatus={"status": sandbox},
        ContainerStatus={"status": {**one, "startedAt": "2000000000"}},
        GetContainerEvents=[told("STARTED", "c1")],
    )
    delivered: list[PodEvent] = []

    def deliver(event: PodEvent) -> bool:
        delivered.append(event)
        return True

    generator = EventGenerator(
        reader, Cache(newest_wins=True), deliver, events_come=lambda _monotonic: True, semantics=Semantics()
    )
    events = RuntimeEvents(reader, generator.take)
    events.start()
    wait_until(lambda: delivered, "it is delivered", timeout_s=PATIENT_S)
    events.stop()
    entry = generator.cache.get("u")
    assert [("u", "ContainerStarted", "fake://c1")] == [(e.uid, e.type.value, e.container_id) for e in delivered]
    assert [2.0] == [container.started_at for container in entry.pod.containers]


def test_a_reader_that_was_closed_has_no_events(runtime: Runtime) -> None:
    reader = connect(runtime.socket, deadline_s=PATIENT_S)
    reader.version()
    reader.close()
    with pytest.raises(CriError, match="went away"):
        list(reader.events())
