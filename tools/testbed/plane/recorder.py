"""An HTTP proxy before an extender that keeps what kube-scheduler sends and what is answered, byte for byte."""

import http.client
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Exchange:
    path: str
    headers: dict[str, str]
    request: bytes
    status: int
    reply: bytes


class Recorder:
    """`exchanges` in the order of the answers. target: host and port of the extender."""

    def __init__(self, host: str, port: int):
        self.exchanges: list[Exchange] = []
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # header and body leave in one write: two would wait for each other (Nagle, delayed ACK)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                connection = http.client.HTTPConnection(host, port, timeout=5)
                try:
                    connection.request("POST", self.path, body, {"Content-Type": self.headers["Content-Type"]})
                    answer = connection.getresponse()
                    reply = answer.read()
                finally:
                    connection.close()
                recorder.exchanges.append(Exchange(self.path, dict(self.headers), body, answer.status, reply))
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers.get("Content-Type", ""))
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_: object) -> None:
                """The exchanges are the log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="recorder", daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
