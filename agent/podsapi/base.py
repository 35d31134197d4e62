"""How asking a kubelet for its pods fails. Pure: loads neither gRPC nor protobuf."""

from collections.abc import Sequence
from typing import Protocol

from agent.cri.base import Trouble
from agent.wire.pod import PodObject
from component.text import one_line

SOCKET = "/var/lib/kubelet/pods-api/pods-api.sock"  # below the kubelet's root directory
# A kubelet without it, or none at all: nothing is wrong then.
NOT_THERE = frozenset({Trouble.NO_SOCKET, Trouble.NOBODY_LISTENS, Trouble.NOT_OFFERED})


class PodsApiError(Exception):
    """A question without an answer. str() is one line."""

    def __init__(self, socket: str, trouble: Trouble, said: object = "") -> None:
        self.trouble = trouble
        words = one_line(said)
        super().__init__(f"ListPods on {socket}: {trouble}{f' ({words})' if words else ''}")


class PodsApi(Protocol):
    """One connection; any thread may close it, which ends the call that waits."""

    def list_pods(self, within_s: float) -> Sequence[PodObject]:
        """All pods of the node. Raises PodsApiError."""
        ...

    def close(self) -> None: ...
