"""One connection to a CRI socket. Its calls have a deadline each, and fail in one line."""

import copy
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Generic, Self, TypeVar

from google.protobuf.message import DecodeError, Message

from agent.cri import api_pb2, rpc
from agent.cri.base import CriError, Trouble
from agent.cri.calls import Calls
from agent.cri.messages import MalformedError, items_of
from agent.cri.socket_errors import trouble_with

(_grpc,) = rpc.load("grpc")  # whoever imports this first: an import of its own would make it look after our forks
MOST_BYTES = 16 * 2**20  # of an answer, as for the kubelet
LIGHT_BYTES = 8 * 2**20  # the same for who has 64 MiB in all: 5,000 containers are 6 MiB, and are read in 30
LONGEST_S = 2.0**31 - 1
"""What the library and runtimes count up to; in one of them a longer deadline is over at once."""
_METHODS = {
    method.input_type.name: (method.name, f"/{service.full_name}/{method.name}")
    for service in api_pb2.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}

M = TypeVar("M", bound=Message)
T = TypeVar("T")


class Client:
    """Any thread may use it. It connects when it is first asked, and again when it has to."""

    def __init__(self, grpc: ModuleType, socket: str, *, deadline_s: float, most_bytes: int = MOST_BYTES) -> None:
        self.socket = socket
        self.deadline_s = deadline_s
        self._grpc = grpc
        self._channel = rpc.channel(grpc, socket, most_bytes=most_bytes)
        self._calls: Calls | None = None

    def of_pod(self, calls: Calls) -> Self:
        """The same connection; its calls end with `calls`: they raise PodIsEnding as well."""
        made = copy.copy(self)
        made._calls = calls  # noqa: SLF001 - of our own kind
        return made

    def call(self, request: Message, answer: type[M], *, deadline_s: float | None = None) -> M:
        """The answer to a request; its type says what is called. Raises CriError."""
        return self._read(request, answer.FromString, deadline_s)

    def items(self, request: Message, item: type[M], lighter: Callable[[M], M]) -> list[M]:
        """Of an answer that is a list its items, each made `lighter` before the next is read. Raises CriError."""
        return self._read(request, lambda said: [lighter(item.FromString(one)) for one in items_of(said)], None)

    def _read(self, request: Message, read: Callable[[bytes], T], deadline_s: float | None) -> T:
        name, path = _METHODS[request.DESCRIPTOR.name]
        within_s = min(LONGEST_S, self.deadline_s if deadline_s is None else deadline_s)
        try:
            # Read here, not by the library: that writes a traceback where it cannot.
            return read(self._said_to(path, request.SerializeToString(), within_s))
        except self._grpc.RpcError as e:
            raise self._error(name, e, within_s) from None
        except ValueError as e:
            raise CriError(name, self.socket, Trouble.WENT_AWAY, e) from None  # closed, by us
        except (DecodeError, MalformedError) as e:
            raise CriError(name, self.socket, Trouble.GARBAGE, e) from None

    def _said_to(self, path: str, request: bytes, within_s: float) -> bytes:
        if self._calls is None:
            return bytes(self._channel.unary_unary(path)(request, timeout=within_s))
        # One that can be cancelled, and yet is read by our own thread, is one of a stream.
        call = self._channel.unary_stream(path)
        found = self._calls.answers(lambda: call(request, timeout=within_s), 2)
        if len(found) != 1:
            raise DecodeError(f"{len(found)} messages instead of one")
        return bytes(found[0])

    def stream(self, request: Message, answer: type[M]) -> "Stream[M]":
        """The answers to a request that has many, for as long as there are any. No deadline: silence is no fault."""
        name, path = _METHODS[request.DESCRIPTOR.name]
        try:
            call = self._channel.unary_stream(path)(request.SerializeToString())
        except ValueError as e:
            raise CriError(name, self.socket, Trouble.WENT_AWAY, e) from None
        return Stream(call, answer, lambda error: self._said(name, error))

    def close(self) -> None:
        self._channel.close()

    def _said(self, name: str, error: Exception) -> CriError:
        """Of a stream: it could not be read, or was ended."""
        if isinstance(error, self._grpc.RpcError):
            return self._error(name, error, self.deadline_s)
        return CriError(name, self.socket, Trouble.GARBAGE, error)

    def _error(self, name: str, error: Any, within_s: float) -> CriError:  # noqa: ANN401 - known at run time only
        codes = self._grpc.StatusCode
        code = error.code()
        said = "" if code is codes.DEADLINE_EXCEEDED else error.details() or ""
        trouble = {
            codes.NOT_FOUND: Trouble.NOT_FOUND,
            codes.UNIMPLEMENTED: Trouble.NOT_OFFERED,
            codes.DEADLINE_EXCEEDED: Trouble.HANGS,
            codes.UNAVAILABLE: Trouble.WENT_AWAY,
            codes.CANCELLED: Trouble.WENT_AWAY,
        }.get(code, Trouble.REFUSED)
        if code is codes.UNKNOWN and said.startswith("Stream removed"):  # the library's, where a connection has ended
            trouble = Trouble.WENT_AWAY
        if code is codes.RESOURCE_EXHAUSTED and "larger than max" in said:
            trouble = Trouble.TOO_LARGE
        if trouble is Trouble.WENT_AWAY and "HTTP/2" in said:  # it could not be read as such
            trouble = Trouble.GARBAGE
        if trouble not in (Trouble.NOT_FOUND, Trouble.NOT_OFFERED):
            seen = trouble_with(self.socket)
            trouble, said = (seen, "") if seen is not None else (trouble, said)
        return CriError(name, self.socket, trouble, said, within_s=within_s)


class Stream(Generic[M]):
    """One thread reads it, any may cancel it. It ends where the runtime ends it; else with CriError."""

    def __init__(self, call: Any, answer: type[M], failed: Callable[[Exception], CriError]) -> None:  # noqa: ANN401
        self._call = call
        self._answer = answer
        self._failed = failed

    def __iter__(self) -> Iterator[M]:
        try:
            for found in self._call:
                yield self._answer.FromString(found)
        except (DecodeError, _grpc.RpcError) as e:
            self._call.cancel()
            raise self._failed(e) from None

    def cancel(self) -> None:
        """Who reads gets CriError."""
        self._call.cancel()
