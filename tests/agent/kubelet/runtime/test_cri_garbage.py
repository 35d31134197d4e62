"""A container runtime whose answers can be read and mean nothing, drawn by chance.

Whatever is asked of it has an answer or an error of its own kind, and what the API server gets of it is of the API.
"""

import contextlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from agent.checks.builtin import runtime as check
from agent.checks.state import CheckState
from agent.cri import api_pb2 as cri
from agent.cri import convert
from agent.cri.base import CriError, Trouble
from agent.cri.reader import CriReader
from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.evented import take_event
from agent.kubelet.pleg.relist import Relist
from agent.kubelet.pods import actions
from agent.kubelet.runtime.base import StartError
from agent.kubelet.runtime.cri_runtime import CriRuntime
from agent.kubelet.runtime.cri_writer import CriWriter
from agent.kubelet.runtime.kubelet_lock import KubeletLock
from agent.kubelet.status.generate import Host, Inputs, generate_status
from agent.kubelet.status.merge import normalized
from agent.opinion.containers import ContainerStates
from agent.processes.command import ExecTimeout, RuntimeUnavailable
from agent.wire.containers import RuntimePod
from agent.wire.model import Container, Pod
from agent.wire.semantics import Semantics
from agent.wire.status import parse_status, write_status
from tools.kit.scope import draws

ROUNDS = draws(100, 500)
TEXTS = (
    *["u"] * 25,
    *["c"] * 25,
    *["node-1"] * 15,
    "",
    "\n",
    "a\nb\0",
    "..",
    "/etc",
    "../x",
    "x" * 5000,
    "\u202e",
    "-1",
)
TEXTS = (*TEXTS, "9" * 30, "10.0.0.1", "::1", "fe80::1%x", "RuntimeReady", "NetworkReady", "a://b", "{", "[" * 5000)
NUMBERS = (0, 1, -1, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63), 2**64 - 1, 10**9)
KEYS = (convert.LABEL_POD_UID, convert.LABEL_CONTAINER_NAME, convert.LABEL_OWNER, convert.ANNOTATION_RESTART_COUNT)
KEYS = (*KEYS, check.LOADED, check.CONFIGURATION)
C = Container("c", image="i", command=("x",))
POD = Pod(uid="u", name="p", namespace="n", containers=(C,))
SEMANTICS = Semantics()
ITS_OWN = (StartError, RuntimeUnavailable, ExecTimeout)


class Client:
    """agent.cri.client.Client, and what it is asked."""

    socket = "/s"
    deadline_s = 1.0

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def call(self, _request: Message, answer: type[Message], *, deadline_s: float | None = None) -> Message:
        if self.random.random() < 0.03:
            raise CriError(f"within {deadline_s}", "/s", self.random.choice(list(Trouble)), "no")
        return answer.FromString(self.filled(answer()).SerializeToString())

    def items(self, request: Message, item: type[Message], lighter: Any) -> list[Message]:
        answer = {cri.PodSandbox: cri.ListPodSandboxResponse, cri.Container: cri.ListContainersResponse}[item]
        (_, listed), *_ = self.call(request, answer).ListFields() or [("", ())]
        return [lighter(one) for one in listed]

    def of_pod(self, _calls: object) -> "Client":
        return self

    def stream(self, _request: Message, answer: type[Message]) -> "Stream":
        return Stream([self.filled(answer()) for _ in range(3)])

    def close(self) -> None: ...

    def filled(self, message: Any, depth: int = 0) -> Any:
        """Most fields, with what they can hold."""
        for field in message.DESCRIPTOR.fields:
            if depth > 5 or self.random.random() < (0.12 if depth else 0.03):
                continue
            held = getattr(message, field.name)
            with contextlib.suppress(ValueError, TypeError):  # a number or a kind that this field cannot hold
                if field.message_type and field.message_type.GetOptions().map_entry:
                    held.update({key: self.random.choice(TEXTS) for key in KEYS if self.random.random() < 0.7})
                elif field.is_repeated and field.message_type:
                    for _ in range(self.random.randrange(4)):
                        self.filled(held.add(), depth + 1)
                elif field.is_repeated:
                    held.extend(self.value(field) for _ in range(self.random.randrange(4)))
                elif field.message_type:
                    held.SetInParent()
                    self.filled(held, depth + 1)
                else:
                    setattr(message, field.name, self.value(field))
        return message

    def value(self, field: Any) -> object:
        if field.type == field.TYPE_STRING:
            return self.random.choice(TEXTS)
        if field.type == field.TYPE_BYTES:
            return b"\xff"
        if field.type == field.TYPE_BOOL:
            return self.random.random() < 0.5
        return self.random.choice((0, 1, 2, 77, -1) if field.type == field.TYPE_ENUM else NUMBERS)


class Stream:
    def __init__(self, messages: list[Any]) -> None:
        self._messages = messages

    def __iter__(self) -> Iterator[Any]:
        return iter(self._messages)

    def cancel(self) -> None: ...


@pytest.fixture(autouse=True)
def unsaid(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("ERROR")


def seen(reader: CriReader) -> RuntimePod:
    """By lists and events, of a pod that there may be."""
    cache = Cache(newest_wins=True)
    relist = Relist(reader, cache, lambda _event: True)
    for monotonic in (1.0, 2.0):
        assert all(isinstance(error, ITS_OWN) for _, error in relist.relist(monotonic).failed)
    with contextlib.suppress(*ITS_OWN):
        for event in reader.events():
            pod = reader.pod(event.uid)
            take_event(
                event,
                pod,
                3.0,
                cache=cache,
                deliver=lambda _event: True,
                fix_removed_container_stays_known=True,
            )
    return cache.get("u").pod


def test_what_the_api_server_gets(seed: int) -> None:
    for number in range(ROUNDS):
        pod, old = seen(CriReader(Client(seed + number))), None
        for _ in range(2):
            inputs = Inputs(
                pod=POD,
                runtime=pod,
                semantics=SEMANTICS,
                old=old,
                host=Host(ip="192.0.2.1"),
                start_errors={},
                pod_is_terminal=False,
                wall=1.8e9,
            )
            old = normalized(POD, generate_status(inputs, lambda _pod, status: status))
            written = json.dumps(write_status(old))
            parse_status(written.encode())  # numbers of 32 bits, times of the calendar
            assert "%" not in json.loads(written).get("podIP", ""), f"{seed + number}"
            actions.pod_actions(actions.Inputs(POD, pod, old, lambda _: None, lambda _: None, SEMANTICS))


def test_what_is_done(seed: int, tmp_path: Path) -> None:
    (precious := tmp_path / "precious").mkdir()
    for number in range(ROUNDS):
        do_all(CriWriter(Client(seed + number), owner="node-1"), tmp_path / "logs")
    assert precious.exists(), seed


def do_all(writer: CriWriter, logs: Path) -> None:
    runtime = CriRuntime(writer, host_ip="192.0.2.1", logs=logs, guard=KubeletLock(None))
    runtime._look()
    runtime._list_images()
    for act in (
        lambda: runtime.prepare_pod(POD),
        lambda: runtime.start_container(POD, C, 2**31 - 1),
        lambda: [runtime.remove_pod(uid) for uid in runtime.known_pods()],
        lambda: runtime.stop_pod("u"),
        lambda: runtime.remove_container("x://y"),
        lambda: runtime._stop_once("x", 1.0),
        runtime.folders,
        lambda: runtime.exec("x", ["y"], 1.0),
    ):
        with contextlib.suppress(*ITS_OWN):
            act()
    runtime._close()


def test_what_is_thought_of_it(seed: int) -> None:
    states = {found_of(CriReader(Client(seed + number))) for number in range(ROUNDS)}
    assert states <= set(CheckState), seed


def found_of(reader: CriReader) -> CheckState:
    ContainerStates(reader, lambda: [POD], lambda: None).turn()
    return check.Check(check.Settings(socket="/"), 1.0, lambda _socket, _within_s: reader)().state


def test_by_chance_there_are_pods_that_have_containers(seed: int) -> None:
    """Else the others would be tests of nothing."""
    assert any(seen(CriReader(Client(seed + number))).containers for number in range(ROUNDS))
