"""What is made of the answers of a container runtime: GetPods, and GetPodStatus of each, from messages of the CRI. What
has no pod, what breaks a kubelet, and a newest sandbox that goes between list and look are not drawn."""

from base64 import b64decode, b64encode
from contextlib import suppress
from random import Random
from typing import Any

from google.protobuf.message import Message

from agent.cri import api_pb2 as cri
from agent.cri.base import CriError, Trouble
from agent.cri.convert import newest_first
from agent.cri.reader import CriReader
from agent.wire.containers import RuntimePod
from agent.wire.semantics import Semantics
from tools.differential import worlds
from tools.differential.target import Answers, History
from tools.differential.worlds import maybe

LABEL = "io.kubernetes."
RESTARTS = "io.kubernetes.container.restartCount"
COUNTS = ("0", "1", "2", "7", "+3", "007", "x", "", " 1", "1_0", "1.0", "\u0663", "9" * 20)
ADDRESSES = (
    *["10.0.0.1"] * 4,
    "10.0.0.2",
    "fd00::1",
    "",
    "x",
    "10.0.0.256",
    "fd00::1%eth0",
    "::ffff:10.0.0.1",
    "1.2.3",
)
STATES = (cri.CONTAINER_CREATED, *[cri.CONTAINER_RUNNING] * 3, *[cri.CONTAINER_EXITED] * 3, cri.CONTAINER_UNKNOWN, 9)
TIMES_S = (0.0, 1.0, 1.5, 20.25)


class PodsTarget:
    name = "pods"

    def draw(self, random: Random) -> History:
        sandboxes, containers, statuses = list[str](), list[str](), dict[str, str]()
        uids = ("u", "v")[: random.choice((1, 1, 2))]
        of = {f"s{n}": random.choice(uids) for n in range(random.choice((0, 1, 2, 3)))}
        made = {id_: _sandbox(random, id_, uid) for id_, uid in of.items()}
        newest = {sandbox.metadata.uid: sandbox.id for sandbox in reversed(newest_first(s for s, _ in made.values()))}
        for id_, (listed, status) in made.items():
            sandboxes.append(_text(listed))
            if id_ in newest.values() or maybe(random, 0.8):
                statuses[id_] = _text(status)
        for number in range(random.choice((0, 1, 2, 3, 5))):
            id_, sandbox = f"c{number}", random.choice((*of, "gone"))
            listed, answer = _container(random, id_, of.get(sandbox, random.choice(uids)), sandbox)
            containers.append(_text(listed))
            if maybe(random, 0.95):
                statuses[id_] = _text(answer)
        fails = [id_ for id_ in statuses if maybe(random, 0.01)]
        return {"sandboxes": sandboxes, "containers": containers, "statuses": statuses, "fails": fails}

    def answer(self, history: History, semantics: Semantics) -> Answers:  # noqa: ARG002 - no gate is asked
        reader = CriReader(_Client(history))  # type: ignore[arg-type] # in part
        reader._name = "r"
        answers = {}
        for pod in reader.list_pods():
            said: Any = {"name": pod.name, "namespace": pod.namespace, "status": None}
            said["sandboxes"] = [[s.id, "running" if s.ready else "exited"] for s in pod.sandboxes]
            said["containers"] = [
                [c.id, c.name, c.phase.value, c.image, c.sandbox_id.removeprefix("r://")] for c in pod.containers
            ]
            with suppress(CriError):
                said["status"] = _seen(reader.pod(pod.uid))
            answers[pod.uid] = said
        return answers

    def told(self, answer: Answers) -> Answers:
        return answer


def _seen(pod: RuntimePod) -> Any:
    """As the driver says it."""
    return {
        "IP": pod.ip,
        "Sandboxes": [
            {"ID": s.id.removeprefix("r://"), "Ready": s.ready, "Host": s.host_network, "Attempt": s.attempt}
            for s in pod.sandboxes
        ],
        "Containers": [
            {
                "ID": c.id,
                "Name": c.name,
                "State": c.phase.value,
                "Reason": c.reason,
                "Message": c.message,
                "Image": c.image,
                "ImageRef": c.image_id,
                "Created": c.created_at,
                "Started": c.started_at,
                "Finished": c.finished_at,
                "ExitCode": c.exit_code,
                "Restarts": c.restart_count,
            }
            for c in pod.containers
        ],
        "Active": [c.id for c in pod.active],
    }


def _sandbox(random: Random, id_: str, uid: str) -> tuple[cri.PodSandbox, Message]:
    state = random.choice((cri.SANDBOX_READY, cri.SANDBOX_READY, cri.SANDBOX_NOTREADY))
    metadata = cri.PodSandboxMetadata(name="p", namespace="ns", uid=uid, attempt=random.choice((0, 0, 1, 2)))
    same: Any = {"metadata": metadata, "created_at": _ns(random), "labels": _labels(uid)}
    network, linux = None, None
    if maybe(random, 0.85):
        more = [cri.PodIP(ip=random.choice(ADDRESSES)) for _ in range(random.choice((0, 0, 1)))]
        network = cri.PodSandboxNetworkStatus(ip=random.choice(ADDRESSES), additional_ips=more)
    if maybe(random, 0.8):
        options = cri.NamespaceOption(network=random.choice((cri.POD, cri.POD, cri.NODE)))
        linux = cri.LinuxPodSandboxStatus(namespaces=cri.Namespace(options=options))
    now = cri.SANDBOX_NOTREADY if maybe(random, 0.1) else state
    status = cri.PodSandboxStatus(id=id_, state=now, network=network, linux=linux, **same)
    return cri.PodSandbox(id=id_, state=state, **same), cri.PodSandboxStatusResponse(status=status)


def _container(random: Random, id_: str, uid: str, sandbox: str) -> tuple[Message, Message]:
    state, made = random.choice(STATES), _ns(random)
    annotations = {RESTARTS: random.choice(COUNTS)} if maybe(random, 0.8) else {}
    name = random.choice("ab")
    same: Any = {"created_at": made, "image": cri.ImageSpec(image="i"), "image_ref": random.choice(("ref", ""))}
    same |= {"labels": {**_labels(uid), LABEL + "container.name": name}, "annotations": annotations}
    same["metadata"] = cri.ContainerMetadata(name=name, attempt=random.choice((0, 1)))
    ends: Any = {"started_at": made + 10**9 if maybe(random, 0.8) else 0, "finished_at": made + 3 * 10**9}
    ends |= {"exit_code": random.choice((0, 1, 137)), "reason": random.choice(("", "Error")), "message": "so"}
    now = random.choice(STATES) if maybe(random, 0.1) else state
    status = cri.ContainerStatus(id=id_, state=now, image_id=random.choice(("", "sha")), **ends, **same)
    listed = cri.Container(id=id_, state=state, pod_sandbox_id=sandbox, **same)
    return listed, cri.ContainerStatusResponse(status=status)


def _labels(uid: str) -> dict[str, str]:
    return {LABEL + "pod.uid": uid, LABEL + "pod.name": "p", LABEL + "pod.namespace": "ns"}


def _ns(random: Random) -> int:
    return int((worlds.START + random.choice(TIMES_S)) * 10**9)


def _text(message: Message) -> str:
    return b64encode(message.SerializeToString(deterministic=True)).decode()


class _Client:
    """Answers as the history has it."""

    socket = "s"

    def __init__(self, history: History) -> None:
        self._history = history

    def close(self) -> None:
        """Nothing is open."""

    def items(self, request: Any, item: Any, lighter: Any) -> list[Any]:
        uid = request.filter.label_selector.get(LABEL + "pod.uid", "")
        if item is cri.PodSandbox:
            sandboxes = [_read(item, text) for text in self._history["sandboxes"]]
            return [lighter(s) for s in sandboxes if not uid or s.metadata.uid == uid]
        containers = [_read(item, text) for text in self._history["containers"]]
        return [lighter(c) for c in containers if not uid or c.labels[LABEL + "pod.uid"] == uid]

    def call(self, request: Any, answer: Any) -> Any:
        match request:
            case cri.PodSandboxStatusRequest():
                id_ = request.pod_sandbox_id
            case _:
                id_ = request.container_id
        if id_ in self._history["fails"]:
            raise CriError("Status", self.socket, Trouble.REFUSED, "away")
        if id_ not in self._history["statuses"]:
            raise CriError("Status", self.socket, Trouble.NOT_FOUND)
        return _read(answer, self._history["statuses"][id_])


def _read(kind: Any, text: str) -> Any:
    return kind.FromString(b64decode(text))
