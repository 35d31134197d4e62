"""What is asked of a container runtime over the CRI, what it says, and how that fails. Pure: loads neither gRPC nor
protobuf, so whoever may ask imports it at the top."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from agent.processes.command import Completed, RuntimeUnavailable, go_duration
from agent.wire.containers import ContainerEvent, RuntimeContainer, RuntimePod
from agent.wire.model import NodeRuntimeHandler
from component.text import one_line

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
RUNTIME_READY = "RuntimeReady"
NETWORK_READY = "NetworkReady"


class Trouble(StrEnum):
    """What is wrong with a call, for who must tell a runtime that is gone from one that hangs."""

    NO_PACKAGES = "no packages"
    NO_SOCKET = "no socket"
    NO_RIGHTS = "no rights"
    NOBODY_LISTENS = "nobody listens"
    HANGS = "hangs"
    GARBAGE = "garbage"
    WENT_AWAY = "went away"
    NOT_OFFERED = "not offered"
    NOT_FOUND = "not found"
    REFUSED = "refused"
    TOO_LARGE = "too large"


_SAYS = {
    Trouble.NO_PACKAGES: "the package for it is not installed: install readygate[grpc]",
    Trouble.NO_SOCKET: "no such socket: start the container runtime, or give the path of its socket",
    Trouble.NO_RIGHTS: "no rights to open the socket: run as root, or as the group that owns it",
    Trouble.NOBODY_LISTENS: "nobody listens: start the container runtime",
    Trouble.HANGS: "no answer within {within}: the container runtime hangs, look at its log and restart it",
    Trouble.GARBAGE: "the answer is no CRI: give the socket of the container runtime",
    Trouble.WENT_AWAY: "the container runtime went away before it answered: look whether it restarts",
    Trouble.NOT_OFFERED: "not offered: enable the CRI in the container runtime, or use a newer one",
    Trouble.NOT_FOUND: "not found",
    Trouble.REFUSED: "the container runtime answered with an error",
    Trouble.TOO_LARGE: "the answer is larger than what is read of one: remove pods and containers that have ended",
}


class CriError(RuntimeUnavailable):
    """A call that has no answer. str() is one line: the call, the socket, what is wrong, and what helps.

    `call`: as the CRI names it. `said`: what the runtime, or the library, had to say, as one line.
    """

    def __init__(self, call: str, socket: str, trouble: Trouble, said: object = "", *, within_s: float = 0.0) -> None:
        self.call = call
        self.socket = socket
        self.trouble = trouble
        self.said = one_line(said)
        says = _SAYS[trouble].format(within=go_duration(within_s))
        super().__init__(f"{call} on {socket}: {says}{f' ({self.said})' if self.said else ''}")


@dataclass(frozen=True, slots=True)
class Version:
    """Of the runtime: "containerd", "2.1.4", "v1"."""

    name: str
    version: str
    api_version: str


@dataclass(frozen=True, slots=True)
class RuntimeCondition:
    type: str
    status: bool
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class RuntimeStatus:
    """`info`: only of a verbose one; name -> text, mostly JSON, and each runtime has its own names.
    `supplemental_groups_policy`: None where it tells of no features."""

    conditions: tuple[RuntimeCondition, ...] = ()
    info: Mapping[str, str] = field(default_factory=dict)
    handlers: tuple[NodeRuntimeHandler, ...] = ()
    supplemental_groups_policy: bool | None = None

    def condition(self, type_: str) -> RuntimeCondition | None:
        """RUNTIME_READY, NETWORK_READY; None where the runtime does not say."""
        return next((condition for condition in self.conditions if condition.type == type_), None)


class Events(Protocol):
    """One thread reads them, any may cancel. They end where the runtime ends them; else with CriError."""

    def __iter__(self) -> Iterator[ContainerEvent]: ...

    def cancel(self) -> None:
        """Who reads gets CriError."""
        ...


class Reader(Protocol):
    """Asks and changes nothing. Any thread may use it; each call has a deadline of its own. All raise CriError.

    Ids of containers and sandboxes have the form name://id, as in a pod's status.
    """

    def version(self) -> Version:
        """One call."""
        ...

    def status(self, *, verbose: bool = False) -> RuntimeStatus:
        """One call. `verbose`: with `info`, which may be large."""
        ...

    def list_pods(self, uid: str = "") -> Sequence[RuntimePod]:
        """Every pod, dead ones included, or at most that one: two calls, however many pods. What lists do not tell is
        left out: addresses, times but for creation, exit codes, reasons."""
        ...

    def pod(self, uid: str) -> RuntimePod:
        """All that is known of a pod: two calls, and one for each of its sandboxes and containers. An empty one if it
        is not known."""
        ...

    def network_namespace(self, uid: str) -> str:
        """The file of the network namespace of a pod, by its newest sandbox that is ready; "" where it has none: it is
        not there, or has the host's. Two calls."""
        ...

    def container(self, container_id: str) -> RuntimeContainer | None:
        """All that is known of a container, with one call; None if there is no such."""
        ...

    def known_pods(self) -> frozenset[str]:
        """UIDs of every pod that has a sandbox: one call."""
        ...

    def events(self) -> Events:
        """What happens from now on. Runtimes of old do not offer it: said by the first look at them."""
        ...

    def exec(self, container_id: str, command: Sequence[str], timeout_s: float) -> Completed:
        """Runs a command in the container, if that was allowed when the reader was made. Raises ExecTimeout too."""
        ...

    def close(self) -> None:
        """Who waits for an answer gets an error."""
        ...
