"""A registry of images on loopback, as far as a push needs one: blobs, uploads, manifests."""

import hashlib
import itertools
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

_BLOB = re.compile(r"/v2/(.+)/blobs/(sha256:\w+)")
_UPLOAD = re.compile(r"/v2/(.+)/blobs/uploads/([^?]*)(?:\?.*?digest=([^&]+))?")
_MANIFEST = re.compile(r"/v2/(.+)/manifests/([^/]+)")


class Registry:
    """refuse: whoever writes is denied. `blobs`: digest -> content."""

    def __init__(self, *, refuse: bool = False) -> None:
        self.blobs: dict[str, bytes] = {}
        self.uploads: dict[str, bytes] = {}
        self.begun = itertools.count()  # not how many there are: several go on at once, and end as they like
        self.manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.refuse = refuse
        registry = self

        class Handler(_Handler):
            of = registry

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="registry", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def manifest(self, repository: str, reference: str) -> bytes:
        """By tag or digest."""
        return self.manifests[repository, reference][1]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    of: Registry

    def do_GET(self) -> None:
        if self.path == "/v2/":
            return self._answer(200)
        if found := _BLOB.fullmatch(self.path):
            return self._content(self.of.blobs.get(found[2]), "application/octet-stream", found[2])
        if found := _MANIFEST.fullmatch(self.path):
            kind, data = self.of.manifests.get((found[1], found[2]), ("", None))
            return self._content(data, kind, f"sha256:{hashlib.sha256(data or b'').hexdigest()}")
        return self._answer(404)

    do_HEAD = do_GET  # noqa: N815 - http.server's word

    def do_POST(self) -> None:
        body = self._body()
        if self.of.refuse:
            return self._answer(403, b'{"errors": [{"code": "DENIED", "message": "denied: you may not write here"}]}')
        found = _UPLOAD.fullmatch(self.path)
        if found is None:
            return self._answer(404)
        name = str(next(self.of.begun))
        self.of.uploads[name] = body
        return self._answer(202, Location=f"/v2/{found[1]}/blobs/uploads/{name}")

    def do_PATCH(self) -> None:
        found = _UPLOAD.fullmatch(self.path)
        if found is None:
            return self._answer(404)
        self.of.uploads[found[2]] += self._body()
        return self._answer(202, Location=self.path, Range=f"0-{len(self.of.uploads[found[2]]) - 1}")

    def do_PUT(self) -> None:
        body = self._body()
        if found := _MANIFEST.fullmatch(self.path):
            digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
            for reference in (found[2], digest):
                self.of.manifests[found[1], reference] = (self.headers.get("Content-Type", ""), body)
            return self._answer(201, **{"Docker-Content-Digest": digest})
        found = _UPLOAD.fullmatch(self.path)
        if found is None:
            return self._answer(404)
        data = self.of.uploads.pop(found[2]) + body
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        if digest != found[3].replace("%3A", ":"):
            return self._answer(400)
        self.of.blobs[digest] = data
        return self._answer(201, **{"Docker-Content-Digest": digest})

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def _content(self, data: bytes | None, kind: str, digest: str) -> None:
        if data is None:
            return self._answer(404)
        return self._answer(200, data, **{"Content-Type": kind, "Docker-Content-Digest": digest})

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_arguments: Any) -> None:
        return
