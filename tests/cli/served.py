"""A scripted cluster in one HTTP server: an API server that forwards ports of scripted extenders."""

import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from tools.fakes import portforward
from tools.kit import serving as kit

NAMESPACE = "readygate-system"
HEAD = {"notAnswering": "", "release": "0.1.0", "lastWordSeconds": 0.4, "sinceStartSeconds": 90_000.0}
OPEN = {
    "node": "node-1",
    "open": True,
    "reason": "",
    "sinceSeconds": 61.5,
    "pod": "readygate-system/agent-1",
    "evidence": "",
    "heartbeatAgeSeconds": 1.5,
}


def encoded(value):
    return value if isinstance(value, bytes) else msgspec.json.encode(value)


def status_of(code, reason, message):
    """A refusal by the API server."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return code, json.dumps(body).encode()


class Extender:
    """One replica. answers: path below /api/v1/ -> JSON, bytes, or (status, bytes). delay_s: before each.

    forward: what the API server and the kubelet make of a port-forward: (status, body), or a function of the handler.
    """

    def __init__(self, name, host="control-1", **answers):
        self.name, self.host, self.delay_s = name, host, 0.0
        self.forward = lambda handler: portforward.forward(handler, self._connect)
        self.forwards = []  # headers of each request for a port-forward
        self.queries = []  # of all requests, in their order
        self.answers = {path: {**HEAD, **one} if isinstance(one, dict) else one for path, one in answers.items()}
        self.requests = []

    def pod(self):
        return {
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {"nodeName": self.host, "hostNetwork": True},
            "status": {"phase": "Running"},
        }

    def _connect(self, port):
        """A connection to its status API."""
        assert port == 9377
        prefix = "/api/v1/"

        def answer(target, headers):
            path = urlsplit(target).path
            self.queries.append(urlsplit(target).query)
            assert path.startswith(prefix)
            return self.get(path.removeprefix(prefix), headers)

        near, far = socket.socketpair()

        def serve():
            with far, suppress(OSError):
                handler_of(answer)(far, "", None)

        threading.Thread(target=serve, daemon=True).start()
        return near

    def get(self, path, headers):
        self.requests.append((path, headers))
        time.sleep(self.delay_s)
        found = self.answers.get(unquote(path), (404, b'{"error":"NotFound","cause":"no such path"}'))
        return found if isinstance(found, tuple) else (200, encoded(found))


class Cluster:
    """objects: path -> JSON, (status, bytes), or a function of the handler. The server listens at `url`."""

    def __init__(self):
        self.extenders = []
        self.objects = {}
        self.url = ""
        self.queries = []  # of all requests, in their order
        self.any_selector = False  # whether pods are listed by other labels too, and are these

    def answer(self, target, headers):
        path = urlsplit(target).path
        self.queries.append(urlsplit(target).query)
        if path in self.objects:
            found = self.objects[path]
            return found if isinstance(found, tuple) or callable(found) else (200, encoded(found))
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        if path == pods:
            labels = parse_qs(urlsplit(target).query)["labelSelector"]
            assert self.any_selector or labels == ["app.kubernetes.io/name=readygate-extender"]
            return 200, encoded({"kind": "PodList", "items": [extender.pod() for extender in self.extenders]})
        for extender in self.extenders:
            if path == f"{pods}/{extender.name}/portforward":
                extender.forwards.append(headers)
                return extender.forward
        return status_of(404, "NotFound", f'"{path}" not found')


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """Ignores errors of clients that left at their deadline."""


def handler_of(answer):
    """answer: (target, headers) -> (status, body), or a function of the handler that does the rest."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            found = answer(self.path, self.headers)
            if callable(found):
                found(self)
                return
            status, body = found
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def do_PATCH(self):
            self.do_POST()

        def log_message(self, *_):
            """Quiet."""

    return Handler


@contextmanager
def serving(answer, tls=None) -> Iterator[str]:
    """The URL of a server. answer: as of handler_of(). tls: an ssl.SSLContext, None for plain HTTP."""
    running = _Server(("127.0.0.1", 0), handler_of(answer))
    if tls:
        running.socket = tls.wrap_socket(running.socket, server_side=True)
    with kit.serving(running):
        yield f"{'https' if tls else 'http'}://127.0.0.1:{running.server_address[1]}"
