"""The httpGet handler, as pkg/probe/http: a fresh connection, no proxy, no TLS verification, redirects within the host.

Known difference: HTTP/1.1 only (kubelet offers HTTP/2 over TLS). What is sent and how an answer is read is Go's, byte
by byte: `tools/differential` holds it to that.
"""

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from agent.probe.dial import Connection, Deadline, DialError, connect
from agent.probe.go_quoting import quoted_bytes
from agent.probe.hosts import punycode_with_port, to_ascii
from agent.probe.reply import SHOWN, Head, Reader, Receive, ReplyError, read_at_most, read_head
from agent.probe.result import HandlerError, HandlerResult, Outcome
from agent.probe.targets import HttpRequest, has_token
from agent.probe.url import Url, UrlError, parse_url
from agent.processes.command import OUTPUT_LIMIT_BYTES

REDIRECTS = (301, 302, 303, 307, 308)
REDIRECT_LIMIT = 10
PLANS = 512  # of requests that come again
DRAIN_BYTES = 2 * 2**10  # of a redirect's body, read before it is followed
PORTS = {"http": 80, "https": 443}
_BLANKS = " \t"
_BLOCK_BYTES = 16 * 2**10
_TOKEN = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_HOST_LINE = re.compile(r"[-A-Za-z0-9!$%&()*+,.:;=\['\]_~]*")
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_NOT_WRITTEN = frozenset({"Host", "User-Agent", "Content-Length", "Transfer-Encoding", "Trailer"})
_OF_A_BODY = frozenset({"Content-Encoding", "Content-Language", "Content-Location", "Content-Type"})
_CLOSE = re.compile(r"(?:^|[ ,\t])close(?:$|[ ,\t])", re.IGNORECASE)


class _ClientError(Exception):
    """What Go's http.Client.Do would return as an error: the probe failed."""


@dataclass(slots=True)
class _Exchange:
    """A response whose body is still to be read."""

    connection: Connection
    reader: Reader
    head: Head


def http_get(request: HttpRequest, timeout_s: float) -> Outcome:
    """One probe. The timeout covers name, connect, TLS, redirects and body. Raises HandlerError for a body that breaks
    off: kubelet throws that result away. Redirects to another host are not followed, as newProber has it."""
    try:
        exchange = _answered(request, Deadline(timeout_s))
    except _ClientError as e:
        return Outcome(HandlerResult.FAILURE, str(e)[:SHOWN])
    try:
        return _outcome(exchange)
    finally:
        exchange.connection.close()


def http_send(request: HttpRequest, timeout_s: float) -> None:
    """As http_get, where any answer will do. Raises HandlerError when there is none."""
    try:
        exchange = _answered(request, Deadline(timeout_s))
    except _ClientError as e:
        raise HandlerError(str(e)[:SHOWN]) from e
    _drain(exchange)
    exchange.connection.close()


def _answered(request: HttpRequest, deadline: Deadline) -> _Exchange:
    """The last answer, after redirects. Raises _ClientError."""
    current, with_body_headers = request, True
    for followed in range(REDIRECT_LIMIT + 1):
        try:
            exchange = _ask(current, deadline)
        except _ClientError as e:
            raise _failure(current.url.without_password(), e) from e
        is_last = False
        try:
            location = exchange.head.first("Location") if exchange.head.status in REDIRECTS else ""
            if not location:
                is_last = True
                return exchange
            with_body_headers = with_body_headers and exchange.head.status in (307, 308)
            try:
                following = _redirected(current, request, location, with_body_headers=with_body_headers)
            except UrlError as e:
                why = f"failed to parse Location header {quoted_bytes(location)}: {e}"
                raise _failure(current.url.without_password(), why) from e
            if following.url.hostname != request.url.hostname:
                is_last = True
                return exchange
            if followed + 1 >= REDIRECT_LIMIT:
                raise _failure(location, f"stopped after {REDIRECT_LIMIT} redirects")
            _drain(exchange)
            current = following
        finally:
            if not is_last:
                exchange.connection.close()
    raise AssertionError("the limit of redirects ends the loop")


def _failure(url: str, cause: object) -> _ClientError:
    return _ClientError(f"Get {quoted_bytes(url)}: {cause}")


def _outcome(exchange: _Exchange) -> Outcome:
    """Raises HandlerError."""
    try:
        body = read_at_most(exchange.reader, exchange.head, OUTPUT_LIMIT_BYTES).decode(errors="replace")
    except TimeoutError as e:
        raise HandlerError(
            "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
        ) from e
    except (OSError, ReplyError) as e:
        raise HandlerError((str(e) if isinstance(e, ReplyError) else _cause(e, _no_fault))[:SHOWN]) from e
    status = exchange.head.status
    if 200 <= status < 300:
        return Outcome(HandlerResult.SUCCESS, body)
    if 300 <= status < 400:
        return Outcome(HandlerResult.WARNING, f"Probe terminated redirects, Response body: {body}")
    # The body stays out of it: it is shown to whoever may read events (#99425).
    return Outcome(HandlerResult.FAILURE, f"HTTP probe failed with statuscode: {status}")


def _drain(exchange: _Exchange) -> None:
    """As Go reads a redirect's body first: one that stalls costs the deadline."""
    if exchange.head.length <= DRAIN_BYTES:
        try:
            read_at_most(exchange.reader, exchange.head, DRAIN_BYTES)
        except (OSError, ReplyError):
            return


def _ask(request: HttpRequest, deadline: Deadline) -> _Exchange:
    """Sends the request and reads up to the end of the headers. Raises _ClientError."""
    opened: Connection | None = None
    fault: Callable[[Exception], str] = _no_fault
    try:
        head, host, port = _plan(request)
        opened = connect(host, port, deadline)
        if request.url.scheme == "https":
            from agent.probe import tls  # late: OpenSSL is an eighth of our memory

            fault = tls.fault
            opened = tls.wrap_tls(opened, host, deadline)
        opened.settimeout(deadline.left_s())
        if not head:
            raise _ClientError("idna: invalid label")
        opened.sendall(head)
        reader = Reader(_receiver(opened, deadline))
        return _Exchange(opened, reader, read_head(reader))
    except Exception as e:
        if opened is not None:
            opened.close()
        if isinstance(e, _ClientError):
            raise
        raise _ClientError(_cause(e, fault)) from e


@lru_cache(maxsize=PLANS)
def _plan(request: HttpRequest) -> tuple[bytes, str, int]:
    """What is sent, to which host and port: a check asks the same each time. Nothing is sent for a name that is none,
    which is dialled as it is. Raises _ClientError, ValueError."""
    head, url = request_head(request), request.url
    try:
        host = to_ascii(url.hostname.encode("latin-1").decode())
    except ValueError:
        host = url.hostname.encode("latin-1").decode(errors="replace")
    return head, host, int(url.port or PORTS[url.scheme])


def _receiver(connection: Connection, deadline: Deadline) -> Receive:
    def receive() -> bytes:
        connection.settimeout(deadline.left_s())
        return connection.recv(_BLOCK_BYTES)

    return receive


def _no_fault(_error: Exception) -> str:
    return ""


def _cause(error: Exception, fault: Callable[[Exception], str]) -> str:
    """`fault`: of TLS itself."""
    match error:
        case TimeoutError():
            return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        case DialError():
            return str(error)
        case ReplyError():
            return str(error) if str(error) == "EOF" else f"net/http: HTTP/1.x transport connection broken: {error}"
        case ConnectionResetError():
            return "connection reset by peer"
        case OSError():
            return fault(error) or (error.strerror or str(error)).lower()
    return f"net/http: {error}"


def request_head(request: HttpRequest) -> bytes:
    """The bytes of the request, in Go's order; none where the host is no name. Raises _ClientError for what Go would
    not send."""
    url, headers = request.url, _with_user(request)
    if url.scheme in PORTS:
        _check_headers(headers)
    if url.scheme not in PORTS:
        raise _ClientError(f"unsupported protocol scheme {quoted_bytes(url.scheme)}")
    if not url.host:
        raise _ClientError("http: no Host in request URL")
    target = url.request_uri
    if _CONTROL.search(target.replace(" ", "")):
        raise _ClientError("net/http: can't write control character in Request.URL")
    try:
        lines = [f"GET {target} HTTP/1.1", f"Host: {_host_line(request.host or url.host)}"]
    except ValueError:
        return b""
    agent = headers["User-Agent"][0] if "User-Agent" in headers else "Go-http-client/1.1"
    if agent:  # one of blanks is sent, as an empty one
        lines.append(f"User-Agent: {agent.strip(_BLANKS)}")
    for name in sorted(headers.keys() - _NOT_WRITTEN):
        lines += [f"{name}: {value.strip(_BLANKS)}" for value in headers[name]]
    if request.takes_gzip and not any(headers.get(name, ("",))[0] for name in ("Accept-Encoding", "Range")):
        lines.append("Accept-Encoding: gzip")
    connection = headers.get("Connection", ())
    switches = bool(headers.get("Upgrade", ("",))[0]) and has_token(list(connection), "upgrade")
    if not switches and not (connection and _CLOSE.search(connection[0])):
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _with_user(request: HttpRequest) -> Mapping[str, tuple[str, ...]]:
    """The headers; the URL's user takes the place of all values of a header that begins with an empty one."""
    user, headers = request.url.user, request.headers
    if user is None or headers.get("Authorization", ("",))[0]:
        return headers
    name, password = (*user, "")[:2]
    basic = base64.b64encode(f"{name}:{password}".encode("latin-1")).decode()
    return {**headers, "Authorization": (f"Basic {basic}",)}


def _check_headers(headers: Mapping[str, tuple[str, ...]]) -> None:
    for name, values in headers.items():
        if not _TOKEN.fullmatch(name):
            raise _ClientError(f"net/http: invalid header field name {quoted_bytes(name)}")
        if not all(_HEADER_VALUE.fullmatch(value) for value in values):
            raise _ClientError(f"net/http: invalid header field value for {quoted_bytes(name)}")


def _host_line(host: str) -> str:
    """Empty where it is no host; without the zone of an address. Raises ValueError for a name that is none."""
    host = punycode_with_port(host.encode("latin-1").decode())
    if not _HOST_LINE.fullmatch(host):
        return ""
    return re.sub(r"(^\[[^\]%]*)%[^\]]*\]", r"\1]", host)


def _redirected(current: HttpRequest, first: HttpRequest, location: str, *, with_body_headers: bool) -> HttpRequest:
    """The request after a redirect. A given Host header survives a relative one. Raises UrlError."""
    url = current.url.resolve(location)
    host = ""
    if current.host and current.host != current.url.host and not _is_absolute(location):
        host = current.host
    headers = dict(first.headers)
    if not with_body_headers:
        headers = {name: values for name, values in headers.items() if name not in _OF_A_BODY}
    referer = _referer(current.url, url, headers.get("Referer", ("",))[0])
    if referer:
        headers["Referer"] = (referer,)
    return replace(current, url=url, headers=headers, host=host)


def _is_absolute(location: str) -> bool:
    try:
        return bool(parse_url(location).scheme)
    except UrlError:
        return True


def _referer(last: Url, following: Url, given: str) -> str:
    if last.scheme == "https" and following.scheme == "http":
        return ""
    if given:
        return given
    return str(last).replace(last.userinfo(), "", 1) if last.user is not None else str(last)
