"""Asking a kubelet for its pods: one that tells; those that hang, are gone, talk nonsense, or offer no such thing."""

import socket
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import pytest
from google.protobuf.json_format import ParseDict

from agent.cri.base import Trouble
from agent.cri.rpc import load
from agent.podsapi.api_pb2 import ListPodsResponse, Pod
from agent.podsapi.base import PodsApiError
from agent.podsapi.client import Client

grpc = load("grpc")[0]
POD = ParseDict({"metadata": {"name": "p", "uid": "u"}}, Pod()).SerializeToString()
PATIENT_S = 60.0


class Kubelet:
    """answer: bytes, or an exception's status and words."""

    def __init__(self, path: Path) -> None:
        self.answer: bytes | tuple[object, str] = ListPodsResponse(pods=[POD, POD]).SerializeToString()
        self.hangs = threading.Event()
        self.hangs.set()
        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        methods = {"ListPods": grpc.unary_unary_rpc_method_handler(self.list_pods)}
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1alpha1.Pods", methods),))
        self.server.add_insecure_port(f"unix:{path}")
        self.server.start()

    def list_pods(self, _request: bytes, context: object) -> bytes:
        self.hangs.wait(PATIENT_S)
        if isinstance(self.answer, tuple):
            context.abort(*self.answer)  # type: ignore[attr-defined]
        return self.answer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pods-api.sock"


@pytest.fixture
def kubelet(path: Path) -> Iterator[Kubelet]:
    made = Kubelet(path)
    yield made
    made.hangs.set()
    made.server.stop(0).wait(10)


def failed(path: Path, within_s: float = PATIENT_S) -> Trouble:
    client = Client(str(path))
    with pytest.raises(PodsApiError) as caught:
        client.list_pods(within_s)
    client.close()
    assert str(caught.value).startswith(f"ListPods on {path}: ")
    assert "\n" not in str(caught.value)
    return caught.value.trouble


@pytest.mark.usefixtures("kubelet")
def test_a_kubelet_tells_its_pods(path: Path) -> None:
    client = Client(str(path))
    assert ["u", "u"] == [item.metadata.uid for item in client.list_pods(PATIENT_S)]
    client.close()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            (grpc.StatusCode.FAILED_PRECONDITION, "Kubelet is\ninitializing"), Trouble.REFUSED, id="it starts"
        ),
        pytest.param((grpc.StatusCode.RESOURCE_EXHAUSTED, "too often"), Trouble.REFUSED, id="asked too often"),
        pytest.param((grpc.StatusCode.UNIMPLEMENTED, "unknown service"), Trouble.NOT_OFFERED, id="it has none"),
        pytest.param(b"\xff\xff\xff", Trouble.GARBAGE, id="no such message"),
        pytest.param(ListPodsResponse(pods=[b"\xff"]).SerializeToString(), Trouble.GARBAGE, id="no pods"),
        pytest.param(b"\x00" * (16 * 2**20 + 1), Trouble.REFUSED, id="more than may be"),
    ],
)
def test_an_answer_that_is_none(kubelet: Kubelet, path: Path, answer: object, expected: Trouble) -> None:
    kubelet.answer = answer  # type: ignore[assignment]
    assert expected == failed(path)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([POD, b"\xff", POD], ["u", "u"], id="one of them is broken"),
        pytest.param([Pod().SerializeToString(), POD], ["u"], id="one of them is empty"),
        pytest.param([], [], id="there is none"),
    ],
)
def test_a_pod_that_cannot_be_decoded_hides_no_other(
    kubelet: Kubelet, path: Path, pods: list[bytes], expected: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    kubelet.answer = ListPodsResponse(pods=pods).SerializeToString()
    client = Client(str(path))
    told = [[item.metadata.uid for item in client.list_pods(PATIENT_S)] for _ in range(2)]
    assert ([expected, expected], int(len(pods) > len(expected))) == (told, len(caplog.records))
    client.close()


def test_one_that_hangs_costs_the_deadline_and_the_next_question_is_answered(kubelet: Kubelet, path: Path) -> None:
    kubelet.hangs.clear()
    assert Trouble.HANGS == failed(path, 0.2)
    kubelet.hangs.set()
    client = Client(str(path))
    assert 2 == len(client.list_pods(PATIENT_S))
    client.close()


def test_whoever_closes_it_ends_the_question_that_waits(kubelet: Kubelet, path: Path) -> None:
    kubelet.hangs.clear()
    client = Client(str(path))
    threading.Timer(0.3, client.close).start()
    with pytest.raises(PodsApiError) as caught:
        client.list_pods(PATIENT_S)
    assert Trouble.WENT_AWAY == caught.value.trouble
    with pytest.raises(PodsApiError):
        client.list_pods(PATIENT_S)


def test_without_a_kubelet(path: Path) -> None:
    assert Trouble.NO_SOCKET == failed(path)
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(path))
    assert Trouble.NOBODY_LISTENS == failed(path)
