"""A small client of a real API server for tests and the demo: JSON objects in, JSON objects out.

On purpose not the product's own client (`kube/`): what checks the product must not share its mistakes.
"""

import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import urllib3

Object = dict[str, Any]
TIMEOUT_S = 15.0


class ApiError(Exception):
    """The API server said no. `status`, `reason` and `message` are its own words; status 0: no answer."""

    def __init__(self, method: str, path: str, status: int, reason: str, message: str):
        super().__init__(f"{method} {path}: {status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class Api:
    """Thread-safe. Paths as in the API reference, e.g. `/api/v1/nodes`."""

    def __init__(self, server: str, *, ca: Path, token: str):
        self.server = server
        self._pool = urllib3.PoolManager(
            maxsize=8,
            ssl_context=ssl.create_default_context(cafile=str(ca)),
            headers={"Authorization": f"Bearer {token}", "User-Agent": "readygate-testbed"},
            retries=False,
            timeout=urllib3.Timeout(total=TIMEOUT_S),
        )

    def request(
        self,
        method: str,
        path: str,
        body: Object | list[Object] | None = None,
        *,
        content_type: str = "application/json",
        timeout_s: float = TIMEOUT_S,
    ) -> Object:
        """Raises ApiError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._pool.headers, "Content-Type": content_type}
        try:
            timeout = urllib3.Timeout(total=timeout_s)
            reply = self._pool.request(method, self.server + path, body=data, headers=headers, timeout=timeout)
        except urllib3.exceptions.HTTPError as e:
            raise ApiError(method, path, 0, type(e).__name__, str(e)) from e
        document = json.loads(reply.data) if reply.data else {}
        if reply.status >= 300:
            raise ApiError(method, path, reply.status, document.get("reason", ""), document.get("message", ""))
        return document

    def get(self, path: str) -> Object:
        return self.request("GET", path)

    def items(self, path: str) -> list[Object]:
        """`items` of a list that fits one answer."""
        return self.get(path)["items"]

    def create(self, path: str, body: Object) -> Object:
        return self.request("POST", path, body)

    def create_unless_there(self, path: str, body: Object) -> None:
        try:
            self.create(path, body)
        except ApiError as e:
            if e.reason != "AlreadyExists":
                raise

    def patch(self, path: str, body: Object) -> Object:
        """Strategic merge patch: lists of objects with a key (conditions, containers) are merged by it."""
        return self.request("PATCH", path, body, content_type="application/strategic-merge-patch+json")

    def delete(self, path: str, *, grace_s: int | None = None) -> None:
        """No error when it is not there."""
        query = "" if grace_s is None else f"?gracePeriodSeconds={grace_s}"
        try:
            self.request("DELETE", path + query)
        except ApiError as e:
            if e.status != 404:
                raise

    def text(self, path: str) -> str:
        """A page that is no JSON, such as /metrics. Raises ApiError."""
        try:
            reply = self._pool.request("GET", self.server + path)
        except urllib3.exceptions.HTTPError as e:
            raise ApiError("GET", path, 0, type(e).__name__, str(e)) from e
        if reply.status >= 300:
            raise ApiError("GET", path, reply.status, "", "")
        return str(reply.data.decode())

    def ready(self) -> bool:
        """`/readyz` says ok."""
        try:
            reply = self._pool.request("GET", f"{self.server}/readyz", timeout=2.0)
        except urllib3.exceptions.HTTPError:
            return False
        return reply.status == 200

    def watch(self, path: str, *, timeout_s: int) -> Iterator[tuple[str, Object]]:
        """(type, object) of every event from now on; begins with ADDED for what exists. Ends after `timeout_s`."""
        separator = "&" if "?" in path else "?"
        url = f"{self.server}{path}{separator}watch=1&timeoutSeconds={timeout_s}"
        reply = self._pool.request("GET", url, preload_content=False, timeout=urllib3.Timeout(read=timeout_s + 5))
        try:
            for line in _lines(reply):
                event = json.loads(line)
                yield event["type"], event["object"]
        finally:
            reply.close()


def _lines(reply: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    for chunk in reply.stream(amt=None):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines


def condition(thing: Object, kind: str) -> Object:
    """The condition of that type in the object's status, or an empty one."""
    return next((c for c in thing.get("status", {}).get("conditions") or [] if c["type"] == kind), {})
