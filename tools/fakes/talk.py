"""A dialogue with an API server and its record: what was asked and what came back, in a form that two servers can be
compared by.

Values that differ by nature are replaced: a resourceVersion by its rank among those of the record, a uid by its number,
a time by TIME.
"""

import http.client
import json
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
OPERATIONS = "application/json-patch+json"
_LIMIT_S = 20.0
_TIMES = frozenset({"creationTimestamp", "deletionTimestamp", "lastTransitionTime"})
# What the real one fills in by rules that the fake does not have, and readygate never reads.
_LEFT_OUT = frozenset(
    {
        *("managedFields", "nodeInfo", "daemonEndpoints", "qosClass", "resources"),
        *("node.alpha.kubernetes.io/ttl", "observedGeneration"),
    }
)
_NO_QUERY: Mapping[str, object] = {}


@dataclass(frozen=True)
class Line:
    """Whom to call. headers: such as the caller's token. stranger: headers of somebody who may do nothing.

    restart: makes the server and the store behind it forget all history. bookmark, forbid_next: make it do
    what the real one does by itself.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    context: ssl.SSLContext | None = None
    stranger: Mapping[str, str] = field(default_factory=dict)
    restart: Callable[[], None] = lambda: None
    bookmark: Callable[[], None] = lambda: None
    forbid_next: Callable[[], None] = lambda: None

    def open(self) -> http.client.HTTPConnection:
        address = urlsplit(self.url)
        if self.context is None:
            return http.client.HTTPConnection(address.hostname or "", address.port, timeout=_LIMIT_S)
        return http.client.HTTPSConnection(address.hostname or "", address.port, timeout=_LIMIT_S, context=self.context)


class Talk:
    """One dialogue. `namespace` is its own; `record` has an entry for each answer and each event."""

    def __init__(self, line: Line, name: str) -> None:
        self.line = line
        self.name = name.replace("_", "-")
        self.namespace = f"talk-{self.name}"
        self.leases = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"
        self.pods = f"/api/v1/namespaces/{self.namespace}/pods"
        self._entries: list[dict[str, Any]] = []
        self._connection = line.open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def restart(self) -> None:
        self.line.restart()
        self._connection.close()  # the next request opens it again

    def say(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] = _NO_QUERY,
        content_type: str = JSON,
        accept: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """One request. The body of the answer, which is noted; bytes are sent as they are."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        target = f"{path}?{urlencode(query)}" if query else path
        asked = {"Content-Type": content_type, "Accept": accept, **(self.line.headers if headers is None else headers)}
        self._connection.request(method, target, data, asked)
        reply = self._connection.getresponse()
        answer = _read(reply)
        kind = reply.headers.get("Content-Type", "").partition(";")[0]
        said = {"asked": f"{method} {path}", "status": reply.status, "type": kind, "answer": answer}
        self._entries.append(said)
        return answer

    def put(self, name: str, holder: str, **metadata: object) -> None:
        """Replaces a Lease, as it is now unless `metadata` says more."""
        self._connection.request("GET", f"{self.leases}/{name}", headers=dict(self.line.headers))
        version = _read(self._connection.getresponse())["metadata"]["resourceVersion"]
        self.say("PUT", f"{self.leases}/{name}", lease(name, holder, **{"resourceVersion": version, **metadata}))

    def list_version(self, path: str) -> str:
        """Not noted: where a watch that is to see all that follows may begin."""
        self._connection.request("GET", path, headers=dict(self.line.headers))
        return str(_read(self._connection.getresponse())["metadata"]["resourceVersion"])

    @contextmanager
    def watching(self, path: str, *, accept: str = JSON, **query: object) -> Iterator["Stream"]:
        connection = self.line.open()
        asked = {"watch": "1", "timeoutSeconds": 30, **query}
        try:
            connection.request("GET", f"{path}?{urlencode(asked)}", headers={"Accept": accept, **self.line.headers})
            reply = connection.getresponse()
            self._entries.append({"asked": f"WATCH {path}", "status": reply.status})
            if reply.status != 200:
                self._entries[-1]["answer"] = _read(reply)
            yield Stream(reply, self._entries)
        finally:
            connection.close()

    @property
    def record(self) -> list[dict[str, Any]]:
        """Comparable."""
        return _comparable(self._entries)


class Stream:
    def __init__(self, reply: http.client.HTTPResponse, entries: list[dict[str, Any]]) -> None:
        self._reply = reply
        self._entries = entries

    def hear(self, count: int) -> None:
        """Notes the next events, fewer when the stream ends."""
        for _ in range(count):
            line = self._reply.readline()
            if not line:
                self._entries.append({"event": "end"})
                return
            event = json.loads(line)
            self._entries.append({"event": event["type"], "answer": event["object"]})

    def hear_end(self) -> None:
        assert self._reply.readline() == b""
        self._entries.append({"event": "end"})


def lease(name: str, holder: str = "a", **metadata: object) -> dict[str, Any]:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 40}
    return {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def _read(reply: http.client.HTTPResponse) -> Any:
    body = reply.read()
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace").strip()


def _comparable(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    versions = sorted({int(v) for entry in entries for v in _versions(entry.get("answer"))})
    names = {str(version): f"version {rank}" for rank, version in enumerate(versions, 1)}
    uids: dict[str, str] = {}
    return [_plain(entry, names, uids) for entry in entries]


def _versions(value: Any) -> Iterator[str]:
    """resourceVersions of objects; a list's is whatever the server has come to by then."""
    if isinstance(value, list):
        for item in value:
            yield from _versions(item)
    if isinstance(value, dict):
        meta = value.get("metadata")
        if isinstance(meta, dict) and meta.get("name") and meta.get("resourceVersion"):
            yield meta["resourceVersion"]
        for inner in value.values():
            yield from _versions(inner)


def _plain(value: Any, versions: Mapping[str, str], uids: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_plain(item, versions, uids) for item in value]
    if isinstance(value, str):
        for uid, name in uids.items():
            value = value.replace(uid, name)
        value = re.sub(r"(?<=too old resource version: )(\d+) \(\d+\)", r"\1 (THE OLDEST)", value)
        value = re.sub(r"\b\d{3,}\b", lambda found: versions.get(found[0], found[0]), value)
        return re.sub(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", value)
    if not isinstance(value, dict):
        return value
    plain = {}
    for key, inner in sorted(value.items()):
        if key in _LEFT_OUT or inner is None:  # null: of a typed object, a time that nobody gave
            continue
        if key == "resourceVersion":
            plain[key] = versions.get(inner, inner) if value.get("name") else "of a list"
        elif key == "uid" and inner:
            plain[key] = uids.setdefault(inner, f"uid {len(uids) + 1}")
        elif key == "continue" and inner:
            plain[key] = "TOKEN"
        elif key in _TIMES and inner:
            plain[key] = "TIME"
        elif key == "spec" and isinstance(inner, dict) and "containers" in inner:
            # Of a pod's spec the real one fills in most; the node is what counts here.
            plain[key] = {"nodeName": inner["nodeName"]} if "nodeName" in inner else {}
        else:
            plain[key] = _plain(inner, versions, uids)
    return plain
