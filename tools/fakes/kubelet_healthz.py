"""The health port of a kubelet that is well."""

import http.server
from collections.abc import Iterator
from contextlib import contextmanager

from tools.kit.serving import serving


@contextmanager
def answering() -> Iterator[str]:
    """Its URL."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_of: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_address[1]}/healthz"
