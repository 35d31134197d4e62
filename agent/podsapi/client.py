"""Asks the kubelet for its pods, over gRPC on its socket. Loads gRPC when it is made."""

import logging
from collections.abc import Sequence
from typing import Any

import msgspec
from google.protobuf.message import DecodeError

from agent.cri import rpc
from agent.cri.base import Trouble
from agent.cri.socket_errors import trouble_with
from agent.podsapi.api_pb2 import ListPodsRequest, ListPodsResponse
from agent.podsapi.base import PodsApiError
from agent.podsapi.convert import pod_of
from agent.wire.pod import PodObject
from component.text import one_line

log = logging.getLogger(__name__)

MOST_BYTES = 16 * 2**20  # 110 pods of 100 KB are fewer
_LIST_PODS = "/v1alpha1.Pods/ListPods"
_NO_POD = (DecodeError, msgspec.DecodeError, ValueError, OverflowError, OSError)


class Client:
    """An agent.podsapi.base.PodsApi. Connects when it is first asked."""

    def __init__(self, socket: str) -> None:
        """Raises PodsApiError where gRPC is not installed."""
        self._socket = socket
        self._broken = 0  # pods of the last answer that are none
        try:
            (self._grpc,) = rpc.load("grpc")
        except ImportError as e:
            raise PodsApiError(socket, Trouble.NO_PACKAGES, e) from None
        self._channel = rpc.channel(self._grpc, socket, most_bytes=MOST_BYTES)

    def list_pods(self, within_s: float) -> list[PodObject]:
        """All pods of the node, but for those that cannot be decoded. Raises PodsApiError, also where that is each."""
        try:
            answer = self._channel.unary_unary(_LIST_PODS)(ListPodsRequest().SerializeToString(), timeout=within_s)
        except self._grpc.RpcError as e:
            raise self._error(e) from None
        except ValueError as e:
            raise PodsApiError(self._socket, Trouble.WENT_AWAY, e) from None  # closed, by us
        try:
            return self._decoded(ListPodsResponse.FromString(answer).pods)
        except _NO_POD as e:
            raise PodsApiError(self._socket, Trouble.GARBAGE, e) from None

    def close(self) -> None:
        self._channel.close()

    def _decoded(self, raws: Sequence[bytes]) -> list[PodObject]:
        """Raises one of _NO_POD where no pod is one."""
        items: list[PodObject] = []
        error: Exception | None = None
        for raw in raws:
            try:
                items.append(pod_of(raw))
            except _NO_POD as e:
                error = e
        if error is not None and not items:
            raise error
        before, self._broken = self._broken, len(raws) - len(items)
        if error is not None and self._broken != before:
            extra = {"pods": self._broken, "of": len(raws), "error": one_line(error)}
            log.warning("pods that the kubelet tells not decoded", extra=extra)
        return items

    def _error(self, error: Any) -> PodsApiError:  # noqa: ANN401 - known at run time only
        codes = self._grpc.StatusCode
        trouble = {
            codes.UNIMPLEMENTED: Trouble.NOT_OFFERED,
            codes.DEADLINE_EXCEEDED: Trouble.HANGS,
            codes.UNAVAILABLE: Trouble.WENT_AWAY,
            codes.CANCELLED: Trouble.WENT_AWAY,
        }.get(error.code(), Trouble.REFUSED)
        if trouble is not Trouble.NOT_OFFERED:
            trouble = trouble_with(self._socket) or trouble
        return PodsApiError(self._socket, trouble, error.details())
