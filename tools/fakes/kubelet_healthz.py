"""The health port of a kubelet that is well."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def answering() -> Iterator[str]:
    """Its URL."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_of: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/healthz"
        server.shutdown()
