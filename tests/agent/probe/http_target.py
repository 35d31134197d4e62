"""A local HTTP server whose every answer a test scripts, down to the bytes."""

import contextlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

Answer = Callable[["Call"], None]


class Call:
    """One request: `line`, `headers` as they were sent, in order, and the connection to answer on."""

    def __init__(self, connection: socket.socket, head: bytes) -> None:
        lines = head.decode("latin-1").split("\r\n")
        self.line = lines[0]
        self.path = self.line.split(" ")[1]
        self.headers = [tuple(line.split(": ", 1)) if ": " in line else (line.rstrip(":"), "") for line in lines[1:]]
        self.connection = connection

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    def reply(self, status: int, body: bytes = b"", *headers: str) -> None:
        head = "\r\n".join((f"HTTP/1.1 {status} X", *headers, f"Content-Length: {len(body)}"))
        self.send(f"{head}\r\n\r\n".encode() + body)

    def redirect(self, location: str, status: int = 302) -> None:
        self.reply(status, b"", f"Location: {location}")

    def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self.connection.sendall(data)


class Target:
    """A context manager; `port` is its port, `calls` the requests so far, `stopped` lets slow answers end."""

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None = None) -> None:
        self._answer = answer
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.calls: list[Call] = []
        self.stopped = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stopped.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with connection:
                head = b""
                while b"\r\n\r\n" not in head:
                    block = connection.recv(65536)
                    if not block:
                        return
                    head += block
                call = Call(connection, head.partition(b"\r\n\r\n")[0])
                self.calls.append(call)
                self._answer(call)


def self_signed(folder: Path) -> ssl.SSLContext:
    """A server context with a certificate nobody knows, made with the openssl command."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    request = ["req", "-x509", "-newkey", "rsa:1024", "-nodes", "-subj", "/CN=nobody", "-days", "1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", *request, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.load_cert_chain(certificate, key)
    return context
