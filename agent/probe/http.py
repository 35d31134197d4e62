"""The httpGet handler, as pkg/probe/http: a fresh connection, no proxy, no TLS verification, redirects within the host.

Known differences: HTTP/1.1 only (kubelet offers HTTP/2 over TLS), and a response of more than 100 headers is a failure.
"""

import http.client
import re
import ssl
from dataclasses import replace
from urllib.parse import urljoin, urlsplit

from agent.probe.dial import Deadline, DeadlineSocket, DialError, connect, wrap_tls
from agent.probe.outcome import HandlerError, HandlerResult, Outcome
from agent.probe.targets import HttpRequest, Url, join_host_port
from agent.processes.command import OUTPUT_LIMIT_BYTES
from component.text import one_line

REDIRECTS = (301, 302, 303, 307, 308)
REDIRECT_LIMIT = 10
ERROR_LIMIT = 128  # characters of a library's own words
INTERIM_LIMIT = 5  # 1xx responses before the real one, as net/http
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


class _ClientError(Exception):
    """What Go's http.Client.Do would return as an error: the probe failed."""


def http_get(request: HttpRequest, timeout_s: float) -> Outcome:
    """One probe. The timeout covers name, connect, TLS, redirects and body. Raises HandlerError for a body that breaks
    off: kubelet throws that result away. Redirects to another host are not followed, as newProber has it."""
    deadline = Deadline(timeout_s)
    first, current = request, request
    followed = 0
    while True:
        try:
            connection, response = _ask(current, deadline)
        except _ClientError as e:
            return Outcome(HandlerResult.FAILURE, f'Get "{current.url}": {e}')
        try:
            location = response.getheader("Location") or "" if response.status in REDIRECTS else ""
            if location:
                try:
                    following = _redirected(current, first, location, response.status)
                except _ClientError as e:
                    return Outcome(HandlerResult.FAILURE, f'Get "{location}": {e}')
                if following.url.hostname == first.url.hostname:
                    followed += 1
                    if followed >= REDIRECT_LIMIT:
                        return Outcome(
                            HandlerResult.FAILURE, f'Get "{location}": stopped after {REDIRECT_LIMIT} redirects'
                        )
                    current = following
                    continue
            return _outcome(response.status, _body(response))
        finally:
            connection.close()


def _outcome(status: int, body: str) -> Outcome:
    if 200 <= status < 300:
        return Outcome(HandlerResult.SUCCESS, body)
    if 300 <= status < 400:
        return Outcome(HandlerResult.WARNING, f"Probe terminated redirects, Response body: {body}")
    # The body stays out of it: it is shown to whoever may read events (#99425).
    return Outcome(HandlerResult.FAILURE, f"HTTP probe failed with statuscode: {status}")


def _ask(request: HttpRequest, deadline: Deadline) -> tuple[DeadlineSocket, http.client.HTTPResponse]:
    """Sends the request and reads up to the end of the headers."""
    url = request.url
    head = _head(request)
    opened = None
    try:
        opened = connect(url.hostname, url.port, deadline)
        if url.scheme == "https":
            opened = wrap_tls(opened, url.hostname, deadline)
        connection = DeadlineSocket(opened, deadline)
        connection.sendall(head)
        for _ in range(INTERIM_LIMIT + 1):
            response = http.client.HTTPResponse(connection, method="GET")  # type: ignore[arg-type]
            response.begin()
            if not 100 <= response.status < 200 or response.status == 101:
                return connection, response
            response.fp = None  # type: ignore[assignment] # else its end would close the buffer that the next response is in
        raise _ClientError("net/http: HTTP/1.x transport connection broken: too many 1xx informational responses")
    except Exception as e:
        if opened is not None:
            opened.close()
        if isinstance(e, _ClientError):
            raise
        raise _ClientError(_cause(e)) from e


def _cause(error: Exception) -> str:
    match error:
        case TimeoutError():
            return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        case DialError():
            return str(error)
        case http.client.RemoteDisconnected() | ConnectionResetError():
            return "EOF" if isinstance(error, http.client.RemoteDisconnected) else "connection reset by peer"
        case http.client.HTTPException():
            return f"net/http: HTTP/1.x transport connection broken: {one_line(error, ERROR_LIMIT)}"
        case ssl.SSLError():
            return f"tls: {error.reason or error}"
        case OSError():
            return (error.strerror or str(error)).lower()
    return f"net/http: {one_line(error, ERROR_LIMIT)}"


def _head(request: HttpRequest) -> bytes:
    lines = [f"GET {request.url.target} HTTP/1.1", f"Host: {request.host or request.url.netloc}"]
    closing = False
    for name, values in request.headers.items():
        for value in values[:1] if name == "User-Agent" else values:
            if not _HEADER_VALUE.fullmatch(value):
                raise _ClientError(f'net/http: invalid header field value for "{name}"')
            if name == "User-Agent" and not value:
                continue  # present but empty: kubelet sends none
            closing = closing or (name == "Connection" and value.lower() == "close")
            lines.append(f"{name}: {value.strip()}")
    if not closing:
        lines.append("Connection: close")
    if any("\n" in line or "\r" in line for line in lines):
        raise _ClientError("net/http: invalid character in the request")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def _body(response: http.client.HTTPResponse) -> str:
    """At most 10 KiB of it; the rest is not read. Raises HandlerError."""
    try:
        block = response.read(OUTPUT_LIMIT_BYTES)
    except TimeoutError as e:
        raise HandlerError(
            "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
        ) from e
    except (OSError, http.client.HTTPException, ValueError) as e:
        raise HandlerError("unexpected EOF" if isinstance(e, http.client.IncompleteRead) else str(e)) from e
    if len(block) < OUTPUT_LIMIT_BYTES and response.length:
        raise HandlerError("unexpected EOF")
    return block.decode(errors="replace")


def _redirected(current: HttpRequest, first: HttpRequest, location: str, status: int) -> HttpRequest:
    """The request after a redirect. A given Host header survives a relative one."""
    try:
        parts = urlsplit(urljoin(str(current.url), location))
        netloc = parts.netloc.rpartition("@")[2]
        hostname, port = _hostname(netloc), parts.port
        relative = not urlsplit(location).scheme
    except ValueError as e:
        raise _ClientError(f'failed to parse Location header "{location[:128]}": {e}') from e
    if parts.scheme not in ("http", "https"):
        raise _ClientError(f'unsupported protocol scheme "{parts.scheme}"')
    if not hostname:
        raise _ClientError(f"{status} response with a Location without host")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    target = target.replace(" ", "%20")
    number = port or (443 if parts.scheme == "https" else 80)
    url = Url(parts.scheme, hostname, number, target, netloc or join_host_port(hostname, number))
    headers = dict(first.headers)
    if "Referer" not in headers and not (current.url.scheme == "https" and url.scheme == "http"):
        headers["Referer"] = (str(current.url),)
    return replace(current, url=url, headers=headers, host=first.host if relative else "")


def _hostname(netloc: str) -> str:
    """The host in its own case, without port and brackets: hosts are compared as they are written."""
    if netloc.startswith("["):
        return netloc[1:].partition("]")[0]
    return netloc.partition(":")[0]
