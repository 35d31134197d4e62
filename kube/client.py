"""One server, one pool: JSON bytes in and out, a total deadline on every call, one error type per cause.

What is retried: a GET on 429 and 5xx with `Retry-After`, on a refused connection, and once on a reset (the idle
connection may have been closed); a write only on 429 with `Retry-After` and on a refused connection, when the server
has certainly done nothing. All of it is within the deadline of the call; a caller may give connecting its own time. A
401 reads the credentials again and retries once. Redirects are not followed.
"""

import http.client
import math
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
import urllib3
from urllib3.exceptions import HTTPError

from component.backoff import Backoff
from kube import errors
from kube.auth import Connection
from kube.errors import CredentialsInvalid, KubeError, was_sent
from kube.media_types import JSON, MERGE_PATCH
from kube.objects import UNREADABLE
from kube.stream import WatchStream
from kube.times import parse_http_date
from kube.transport import NoConnection, Transport

ATTEMPTS = 5  # client-go tries 10 times; the deadline of the call ends most rounds earlier
REFUSED_BACKOFF = Backoff(first_s=0.25, limit_s=4.0)
_PIECE_BYTES = 2**18
ERROR_BODY_LIMIT_BYTES = 64 * 2**10  # a Status is small; a longer body is a proxy's page
_NO_QUERY: Mapping[str, str] = MappingProxyType({})


class Dated(NamedTuple):
    """An answer, and its time by the clock of the server or a proxy: seconds since the epoch, whole ones. None: not
    given."""

    body: bytes
    date: float | None


class _Status(msgspec.Struct):
    """The fields of metav1.Status that an error needs."""

    reason: str = ""
    message: str = ""


_STATUS = msgspec.json.Decoder(_Status)
_REFUSES_OURS = re.compile("_ALERT_(UNKNOWN_CA|ACCESS_DENIED|.*CERTIFICATE.*)")


class Client:
    """A client. Thread-safe. Connections are made when needed, so it may be built before a fork and used after it."""

    def __init__(
        self,
        connection: Connection,
        *,
        user_agent: str,
        deadline_s: float = 10.0,
        monotonic: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
        attempts: int = ATTEMPTS,
        answer_limit_bytes: float = math.inf,
    ) -> None:
        """wait: sleeps so many seconds and returns whether to give up (the client is closed). answer_limit_bytes: a
        longer answer is an error, for callers with little memory. Raises CredentialsInvalid for an address that cannot
        be used; sends nothing."""
        self._server = connection
        self._credentials = connection.credentials
        self._user_agent = user_agent
        self._deadline_s = deadline_s
        self._monotonic = monotonic
        self._attempts = attempts
        self._answer_limit_bytes = answer_limit_bytes
        self._closing = threading.Event()
        self._wait = wait if wait is not None else self._closing.wait
        self._transport = Transport(connection, pool_size=8)

    def branch(self, *, attempts: int = 1) -> "Client":
        """Returns a client with the same server and identity and its own connections, so that closing it disturbs no
        other."""
        return Client(
            self._server,
            user_agent=self._user_agent,
            deadline_s=self._deadline_s,
            monotonic=self._monotonic,
            attempts=attempts,
            answer_limit_bytes=self._answer_limit_bytes,
        )

    def get(
        self,
        path: str,
        *,
        query: Mapping[str, str] = _NO_QUERY,
        deadline_s: float | None = None,
        connect_s: float | None = None,
    ) -> bytes:
        """Returns the body of the answer. Raises KubeError, CredentialsInvalid (as all calls do). connect_s: as of
        patch()."""
        return self._call("GET", _target(path, query), b"", "", deadline_s, connect_s).body

    def get_dated(self, path: str, *, query: Mapping[str, str] = _NO_QUERY, limit_bytes: float = math.inf) -> Dated:
        """As get(). Raises TooLarge for a larger answer."""
        return self._call("GET", _target(path, query), b"", "", None, limit_bytes=limit_bytes)

    def create(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes:
        """POSTs to a collection (or a subresource). Returns the created object."""
        return self._call("POST", path, body, JSON, deadline_s).body

    def replace(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes:
        """PUTs a whole object."""
        return self._call("PUT", path, body, JSON, deadline_s).body

    def patch(
        self,
        path: str,
        body: bytes,
        *,
        content_type: str = MERGE_PATCH,
        deadline_s: float | None = None,
        connect_s: float | None = None,
    ) -> bytes:
        """connect_s: time for a connection that must be made first; deadline_s counts from then on."""
        return self._call("PATCH", path, body, content_type, deadline_s, connect_s).body

    def delete(self, path: str, body: bytes = b"", *, deadline_s: float | None = None) -> bytes:
        """body: DeleteOptions, or nothing."""
        return self._call("DELETE", path, body, JSON if body else "", deadline_s).body

    def watch(self, path: str, *, query: Mapping[str, str], silence_limit_s: float = 70.0) -> WatchStream:
        """Opens a watch (`watch=1` is added to the query). Opening takes at most the deadline of a call.

        The API server sends a bookmark about once a minute, hence 70 s. Raises KubeError.
        """
        target = f"{path}?{urlencode({'watch': '1', **query})}"
        try:
            return self._open_watch(path, target, silence_limit_s)
        except errors.Unauthorized:
            self._refresh()
        except errors.Unreachable as e:
            if not self._is_curable(e):
                raise
        return self._open_watch(path, target, silence_limit_s)

    def close(self) -> None:
        """Unblocks all calls and watches of this client; they end at once. May be called twice."""
        self._closing.set()
        self._transport.close()

    def _open_watch(self, path: str, target: str, silence_limit_s: float) -> WatchStream:
        connection = self._transport.own_connection(timeout_s=self._deadline_s)
        try:
            connection.request(
                "GET",
                self._transport.prefix + target,
                headers=self._headers(""),
                preload_content=False,
                decode_content=False,
            )
            response = connection.getresponse()
            if response.status == 200:
                return WatchStream(connection, response, path, silence_limit_s)
            body = response.read(ERROR_BODY_LIMIT_BYTES)
            response.close()
        except (HTTPError, http.client.HTTPException, OSError, ValueError) as e:
            connection.close()
            raise self._no_answer(path, e, self._deadline_s) from e
        connection.close()
        raise _refusal(path, response, body)

    def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Accept": JSON, "User-Agent": self._user_agent, **self._credentials.headers(self._monotonic())}
        if content_type:
            headers["Content-Type"] = content_type
        return headers

    def _call(
        self,
        method: str,
        target: str,
        body: bytes,
        content_type: str,
        deadline_s: float | None,
        connect_s: float | None = None,
        limit_bytes: float = math.inf,
    ) -> Dated:
        limit_s = self._deadline_s if deadline_s is None else deadline_s
        ends = self._monotonic() + limit_s + (connect_s or 0.0)
        path = target.partition("?")[0]
        refreshed = reset = False
        backoff = REFUSED_BACKOFF
        while True:
            left_s = ends - self._monotonic()
            if left_s <= 0:
                raise errors.DeadlineExceeded(path=path, message=f"no answer within {limit_s:g} s")
            if connect_s is None:
                timeout = urllib3.Timeout(total=left_s)
            else:
                timeout = urllib3.Timeout(connect=min(connect_s, left_s), read=min(limit_s, left_s))
            try:
                return self._exchange(method, path, target, body, content_type, timeout, limit_s, limit_bytes)
            except errors.Unauthorized:
                if refreshed:
                    raise
                refreshed = True
                self._refresh()
                continue
            except KubeError as e:
                if not refreshed and (method == "GET" or not was_sent(e)) and self._is_curable(e):
                    refreshed = True
                    continue
                refused_s, backoff = backoff.next(lambda: 0.0)
                pause_s = self._pause_s(method, e, refused_s, reset=reset)
                if pause_s is None or backoff.failures >= self._attempts or self._monotonic() + pause_s >= ends:
                    raise
                reset = reset or _is_reset(e)
                if pause_s and self._wait(pause_s):
                    raise

    def _refresh(self) -> None:
        """Reads the credentials again after a refusal. Idle connections are closed, because the server knows them by
        the old ones."""
        self._credentials.refresh()
        if self._server.tls is not None:
            self._server.tls.refresh()
        self._transport.drop_kept()

    def _is_curable(self, error: KubeError) -> bool:
        """Returns whether TLS has failed with certificates that have been renewed since."""
        if error.reason != "TLS":
            return False
        with suppress(CredentialsInvalid):
            self._refresh()
        return self._transport.is_renewed()

    @staticmethod
    def _pause_s(method: str, error: KubeError, refused_s: float, *, reset: bool) -> float | None:
        """Returns the seconds until the same request may be sent again; None if it may not. refused_s: after a refused
        connection."""
        if isinstance(error, errors.ConnectionRefused):
            return refused_s
        if isinstance(error, errors.TooManyRequests):
            return error.retry_after_s
        if method == "GET" and isinstance(error, errors.ServerError):
            return error.retry_after_s
        if method == "GET" and _is_reset(error) and not reset:
            return 0.0
        return None

    def _exchange(
        self,
        method: str,
        path: str,
        target: str,
        body: bytes,
        content_type: str,
        timeout: urllib3.Timeout,
        limit_s: float,
        limit_bytes: float,
    ) -> Dated:
        try:
            response = self._transport.pool.urlopen(
                method,
                self._transport.prefix + target,
                body=body or None,
                headers=self._headers(content_type),
                timeout=timeout,
                retries=False,
                redirect=False,
                assert_same_host=False,
                preload_content=False,
                decode_content=False,
            )
            try:
                if response.status < 300:
                    whole = _whole(response, path, min(limit_bytes, self._answer_limit_bytes))
                    return Dated(whole, parse_http_date(response.headers.get("Date")))
                answer = response.read(ERROR_BODY_LIMIT_BYTES)
                if len(answer) == ERROR_BODY_LIMIT_BYTES:
                    response.close()  # otherwise it was read to its end, and the connection is back in the pool
            except BaseException:
                response.close()
                raise
        except (HTTPError, http.client.HTTPException, OSError, ValueError) as e:
            raise self._no_answer(path, e, limit_s) from e
        raise _refusal(path, response, answer)

    def _no_answer(self, path: str, error: Exception, limit_s: float) -> KubeError:
        if self._closing.is_set():
            return errors.Unreachable(path=path, reason="Closed", message="the client was closed")
        causes = list(_causes(error))
        if any(isinstance(c, ConnectionRefusedError) for c in causes):
            message = f"nothing listens at {self._server.server}: is the API server running?"
            return errors.ConnectionRefused(path=path, message=message)
        sent = not any(isinstance(c, NoConnection) for c in causes)
        if any(isinstance(c, TimeoutError | urllib3.exceptions.ReadTimeoutError) for c in causes):
            return errors.DeadlineExceeded(path=path, message=f"no complete answer within {limit_s:g} s", sent=sent)
        if any(isinstance(c, ConnectionError | http.client.IncompleteRead | EOFError) for c in causes):
            broke = "the connection broke before the whole answer"
            return errors.Unreachable(path=path, reason="Reset", message=broke, sent=sent)
        if isinstance(error, http.client.HTTPException | urllib3.exceptions.ProtocolError):
            return errors.MalformedReply(path=path, message=f"this is not an HTTP server's answer: {error}")
        if any(isinstance(c, urllib3.exceptions.SSLError | ssl.SSLError) for c in causes):
            message = f"TLS with {self._server.server} failed: {error}; {_remedy(causes)}"
            return errors.Unreachable(path=path, reason="TLS", message=message, sent=sent)
        refused = next((c.strerror for c in reversed(causes) if isinstance(c, OSError) and c.strerror), None)
        # urllib3's messages name its own objects.
        return errors.Unreachable(path=path, message=f"{self._server.server}: {refused or error}", sent=sent)


def _whole(response: urllib3.BaseHTTPResponse, path: str, limit_bytes: float) -> bytes:
    """Returns the body. Raises TooLarge without reading more."""
    if limit_bytes == math.inf:
        return response.read()
    pieces, read_bytes = list[bytes](), 0
    while piece := response.read(_PIECE_BYTES):
        read_bytes += len(piece)
        if read_bytes > limit_bytes:
            message = f"the answer is larger than {limit_bytes / 2**20:g} MiB, more than this client accepts"
            raise errors.TooLarge(path=path, message=message)
        pieces.append(piece)
    return b"".join(pieces)


def _target(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _is_reset(error: KubeError) -> bool:
    return isinstance(error, errors.Unreachable) and error.reason == "Reset"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yields the error, its causes, and the errors that urllib3 passes as arguments."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        yield from (a for a in seen.args if isinstance(a, BaseException))
        seen = seen.__cause__ or seen.__context__


def _remedy(causes: Iterable[BaseException]) -> str:
    """Returns the remedy of a TLS failure. Some alerts of the server are about this client's certificate, others about
    TLS."""
    reasons = [getattr(cause, "reason", None) for cause in causes if isinstance(cause, ssl.SSLError)]
    if any(_REFUSES_OURS.search(reason or "") for reason in reasons):
        return "the server refuses the client certificate: none sent, expired, or of another authority"
    return "compare certificate-authority and address"


def _refusal(path: str, response: urllib3.BaseHTTPResponse, body: bytes) -> KubeError:
    try:
        status = _STATUS.decode(body)
    except UNREADABLE:  # a proxy's page, or a truncated body
        status = _Status(message=body[:512].decode("utf-8", "replace"))
    return errors.from_status(
        path=path,
        status=response.status,
        reason=status.reason,
        message=status.message,
        retry_after_s=_seconds(response.headers.get("Retry-After")),
    )


def _seconds(text: str | None) -> float | None:
    """Reads `Retry-After` as whole seconds, the only form that the API server uses."""
    return float(text) if text is not None and text.isascii() and text.isdigit() else None
