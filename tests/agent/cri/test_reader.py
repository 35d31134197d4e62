"""A runtime that answers, fails, hangs, vanishes and comes back: what its reader says of it."""

import contextlib
import math
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cri import rpc
from agent.cri.base import CriError, Reader, Trouble
from agent.cri.connect import connect
from agent.processes.command import Completed, ExecTimeout, RuntimeUnavailable
from agent.wire.containers import ContainerPhase, RuntimePod
from tools.fakes.cri import Runtime
from tools.kit.waiting import wait_until

PATIENT_S = 60.0  # where it must not matter how slow the machine is
SHORT_S = 2.0  # where waiting for nothing is what is tried


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    made = Runtime(tmp_path_factory.mktemp("cri"))
    made.start()
    yield made
    made.process.kill()


@pytest.fixture
def reader(runtime: Runtime) -> Iterator[Reader]:
    found = connect(runtime.socket, deadline_s=PATIENT_S, may_exec=True)
    yield found
    found.close()


def failing(reader: Reader) -> CriError:
    """What its next question ends in."""
    with pytest.raises(CriError) as told:
        reader.version()
    assert re.fullmatch(r"[^\n]+", str(told.value))
    return told.value


def sandbox(id_: str, uid: str, attempt: int = 0) -> dict[str, object]:
    metadata = {"name": "web", "namespace": "ns", "uid": uid, "attempt": attempt}
    return {"id": id_, "metadata": metadata, "state": "SANDBOX_READY", "createdAt": "1000000000"}


def container(id_: str, uid: str) -> dict[str, object]:
    labels = {"io.kubernetes.pod.uid": uid, "io.kubernetes.container.name": "c"}
    what = {"id": id_, "podSandboxId": "s1", "metadata": {"name": "c"}, "image": {"image": "i"}}
    return {**what, "state": "CONTAINER_RUNNING", "labels": labels, "createdAt": "1000000000"}


def test_all_of_a_pod_is_its_lists_and_a_look_at_each(runtime: Runtime, reader: Reader) -> None:
    ended = {"state": "CONTAINER_EXITED", "exitCode": 3, "reason": "Error", "finishedAt": "5000000000"}
    runtime.says(
        ListPodSandbox={"items": [sandbox("s1", "u", 1), sandbox("s0", "u")]},
        ListContainers={"containers": [container("c1", "u"), container("c2", "u")]},
        PodSandboxStatus__s1={"status": {**sandbox("s1", "u", 1), "network": {"ip": "10.0.0.9"}}},
        PodSandboxStatus__s0="NOT_FOUND:it was removed meanwhile",
        ContainerStatus__c1={"status": {"id": "c1", "labels": {"io.kubernetes.container.name": "c"}, **ended}},
        ContainerStatus__c2="NOT_FOUND:it was removed meanwhile",
    )
    pod = reader.pod("u")
    assert ("web", "ns", "10.0.0.9") == (pod.name, pod.namespace, pod.ip)
    assert ["fake://s1"] == [s.id for s in pod.sandboxes]
    assert [("fake://c1", "c", ContainerPhase.EXITED, 3, "fake://s1")] == [
        (c.id, c.name, c.phase, c.exit_code, c.sandbox_id) for c in pod.containers
    ]
    assert [("u", 2, 2)] == [(p.uid, len(p.sandboxes), len(p.containers)) for p in reader.list_pods()]
    assert {"u"} == reader.known_pods()
    found = reader.container("fake://c1")
    assert found is not None
    assert 3 == found.exit_code
    assert None is reader.container("fake://c2")


def test_a_pod_that_is_not_known_is_an_empty_one(runtime: Runtime, reader: Reader) -> None:
    runtime.says(ListPodSandbox={}, ListContainers={})
    assert RuntimePod("v") == reader.pod("v")


def test_its_status_with_what_the_runtime_has_to_say_about_itself(runtime: Runtime, reader: Reader) -> None:
    network = {"type": "NetworkReady", "status": False, "reason": "NetworkPluginNotReady", "message": "no CNI"}
    runtime.says(Status={"status": {"conditions": [network]}, "info": {"lastCNILoadStatus": "none"}})
    status = reader.status(verbose=True)
    condition = status.condition("NetworkReady")
    assert condition is not None
    assert (False, "no CNI", {"lastCNILoadStatus": "none"}) == (condition.status, condition.message, status.info)


@pytest.mark.parametrize(
    ("answer", "trouble", "says"),
    [
        pytest.param("garbage", Trouble.GARBAGE, "give the socket of the container runtime", id="bytes of no message"),
        pytest.param({}, Trouble.GARBAGE, "it has no name or no version", id="a message that says nothing"),
        pytest.param("UNKNOWN:bolt is\n  broken", Trouble.REFUSED, r"\(bolt is broken\)", id="an error of its own"),
        pytest.param("UNIMPLEMENTED:unknown service", Trouble.NOT_OFFERED, "enable the CRI", id="another service"),
        pytest.param("large", Trouble.TOO_LARGE, "larger than what is read", id="more than it may be"),
    ],
)
def test_what_is_no_answer(runtime: Runtime, reader: Reader, answer: object, trouble: Trouble, says: str) -> None:
    version = runtime.answers["Version"]
    runtime.says(Version=answer)
    error = failing(reader)
    runtime.says(Version=version)
    assert (trouble, "Version", runtime.socket) == (error.trouble, error.call, error.socket)
    assert re.search(says, str(error)), error
    assert "fake" == reader.version().name


def test_a_call_that_hangs_ends_at_its_deadline_and_says_which(runtime: Runtime) -> None:
    reader = connect(runtime.socket, deadline_s=SHORT_S)
    runtime.says(ListPodSandbox="hang")
    with pytest.raises(CriError, match=r"^ListPodSandbox on .*: no answer within 2s: .* hangs") as told:
        reader.known_pods()
    reader.close()
    assert Trouble.HANGS is told.value.trouble


def test_others_do_not_wait_for_a_call_that_hangs(runtime: Runtime, reader: Reader) -> None:
    reader.version()
    runtime.says(ListPodSandbox="hang")
    waiting = threading.Thread(target=ask_and_fail, args=(reader,), name="waiting")
    waiting.start()
    assert ("fake", True) == (reader.version().name, waiting.is_alive())
    reader.close()
    waiting.join(PATIENT_S)
    assert not waiting.is_alive(), "closing ends who waits"


def ask_and_fail(reader: Reader) -> None:
    with pytest.raises(CriError):
        reader.known_pods()


def test_what_was_closed_says_so(runtime: Runtime) -> None:
    reader = connect(runtime.socket)
    reader.close()
    assert Trouble.WENT_AWAY is failing(reader).trouble


def test_one_that_vanishes_in_the_middle_is_found_when_it_comes_back(tmp_path: Path) -> None:
    runtime = Runtime(tmp_path)
    runtime.start()
    reader = connect(runtime.socket, deadline_s=PATIENT_S)
    assert "fake" == reader.version().name
    runtime.says(ListPodSandbox="vanish")
    with pytest.raises(CriError, match=r"^ListPodSandbox on ") as told:
        reader.known_pods()
    assert told.value.trouble in (Trouble.WENT_AWAY, Trouble.NOBODY_LISTENS), told.value
    runtime.process.kill()
    becomes(reader, Trouble.NOBODY_LISTENS)
    Path(runtime.socket).unlink()
    becomes(reader, Trouble.NO_SOCKET)
    runtime.says(ListPodSandbox={})
    runtime.start()
    wait_until(lambda: answers(reader), "the reader finds it again", timeout_s=PATIENT_S)
    assert frozenset() == reader.known_pods()
    reader.close()
    runtime.process.kill()


def becomes(reader: Reader, trouble: Trouble) -> None:
    """The library may still be about to end its connection."""
    wait_until(lambda: failing(reader).trouble is trouble, lambda: str(failing(reader)), timeout_s=PATIENT_S)


def answers(reader: Reader) -> bool:
    try:
        return bool(reader.version())
    except CriError:
        return False


def test_one_that_stands_still_hangs_and_answers_when_it_goes_on(tmp_path: Path) -> None:
    runtime = Runtime(tmp_path)
    runtime.start()
    runtime.process.signal(signal.SIGSTOP)
    reader = connect(runtime.socket, deadline_s=SHORT_S)  # its first connection, too
    assert [Trouble.HANGS] * 2 == [failing(reader).trouble for _ in range(2)]
    runtime.process.signal(signal.SIGCONT)
    wait_until(lambda: answers(reader), "the reader finds it again", timeout_s=PATIENT_S)
    reader.close()
    runtime.process.kill()


@pytest.mark.parametrize(
    ("says", "trouble"),
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", Trouble.GARBAGE, id="a web server"),
        pytest.param(bytes(range(256)) * 4, Trouble.GARBAGE, id="noise"),
        pytest.param(b"", Trouble.WENT_AWAY, id="nothing, and it hangs up"),
    ],
)
def test_a_socket_of_another_program(tmp_path: Path, says: bytes, trouble: Trouble) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path := str(tmp_path / "other.sock"))
        listener.listen()
        threading.Thread(target=speak, args=(listener, says), name="other", daemon=True).start()
        reader = connect(path, deadline_s=PATIENT_S)
        assert trouble is failing(reader).trouble
        reader.close()
        listener.shutdown(socket.SHUT_RDWR)


def speak(listener: socket.socket, says: bytes) -> None:
    while True:
        try:
            connection = listener.accept()[0]
        except OSError:
            return
        with connection, contextlib.suppress(OSError):
            if says:  # it stays until the other goes: who hangs up first must not be a matter of luck
                connection.sendall(says)
                while connection.recv(4096):
                    pass


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("none/cri.sock", id="a folder that is not there"),
        pytest.param("file/cri.sock", id="a folder that is a file"),
        pytest.param("x" * 120, id="too long for one"),
        pytest.param("file", id="a file"),
        pytest.param("folder", id="a folder"),
        pytest.param("dangling", id="a link that leads nowhere"),
        pytest.param("loop", id="a link to itself"),
        pytest.param("datagrams", id="a socket of another kind"),
    ],
)
def test_a_path_that_is_no_socket(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(tmp_path / "datagrams"))
        reader = connect(str(tmp_path / name))
        error = failing(reader)
        reader.close()
    assert (Trouble.NO_SOCKET, True) == (error.trouble, "give the path of its socket" in str(error))


def test_a_command_in_a_container(runtime: Runtime, reader: Reader) -> None:
    runtime.says(ExecSync__c1={"stdout": "aGk=", "stderr": "", "exitCode": 1})
    assert Completed(1, b"hi", b"") == reader.exec("fake://c1", ["cat"], 1.0)
    runtime.says(ExecSync__c1="DEADLINE_EXCEEDED:context deadline exceeded")
    with pytest.raises(ExecTimeout, match='"cat" timed out after 1s'):
        reader.exec("fake://c1", ["cat"], 1.0)
    runtime.says(ExecSync__c1="NOT_FOUND:no such container")
    with pytest.raises(RuntimeUnavailable, match="no such container"):
        reader.exec("fake://c1", ["cat"], 1.0)


@pytest.mark.parametrize(
    "timeout_s",
    [pytest.param(math.inf, id="none, as for a postStart hook"), pytest.param(2.0**63, id="as long as a grace may be")],
)
def test_a_command_without_a_limit(runtime: Runtime, reader: Reader, timeout_s: float) -> None:
    runtime.says(ExecSync__c1={"stdout": "aGk=", "stderr": "", "exitCode": 0})
    assert Completed(0, b"hi", b"") == reader.exec("fake://c1", ["cat"], timeout_s)
    runtime.says(ExecSync__c1="DEADLINE_EXCEEDED:the runtime has one of its own")
    with pytest.raises(ExecTimeout, match='"cat" timed out after 596523h14m7s'):
        reader.exec("fake://c1", ["cat"], timeout_s)


def test_a_reader_runs_no_commands_unless_it_may(runtime: Runtime) -> None:
    reader = connect(runtime.socket)
    with pytest.raises(RuntimeUnavailable, match="not allowed"):
        reader.exec("fake://c1", ["cat"], 1.0)
    reader.close()


def test_without_its_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    rpc._load.cache_clear()
    with pytest.raises(CriError, match=r"install readygate\[grpc\]"):
        connect()
    rpc._load.cache_clear()


def test_a_thousand_calls_that_fail_leave_no_descriptor_and_no_thread(tmp_path: Path) -> None:
    reader = connect(str(tmp_path / "none.sock"))
    failing(reader)
    before = held()
    for _ in range(1000):
        failing(reader)
    # The library may be trying to connect just now.
    wait_until(lambda: all(now <= then for now, then in zip(held(), before, strict=True)), timeout_s=PATIENT_S)
    reader.close()


def held() -> tuple[int, int]:
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()
