"""python -m tools.bench.parser_rungs NAME: one of those that answer in the suite `parsers`.

Each is given the same bytes and sends the same verdicts, on 5,000 nodes of which one in fifty is closed; they differ in
who reads HTTP. It says where it listens and ends with its standard input, as the Go programs do.
"""

import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from gunicorn.app.base import Application
from gunicorn.asgi.parser import ParseError, PythonProtocol
from httptools import HttpParserError

from extender.config.settings import parse
from extender.policy.snapshot import INHERITED_KICKS
from extender.process.arbiter import Master
from extender.process.foreground import listen, run
from extender.process.services import Services
from extender.serve import connection, loop
from extender.serve.http import Heads, Reader, Request
from extender.serve.loop import Loop
from extender.serve.routes import Routes
from extender.verbs.filter import answer_filter
from tests.extender.builders import node, pod
from tools.bench.asking import node_name
from tools.bench.filter_latency import NODES
from tools.kit.brakes import OFF_YAML

CLOSED_EACH = 50
CHORES_EVERY_S = 1.0


def filled() -> Services:
    """With verdicts; nothing is asked of an API server."""
    services = Services(parse(OFF_YAML), None)
    names = [node_name(i) for i in range(NODES)]
    services.index.replace_nodes([node(name) for name in names])
    (pods,) = services.index.lists.values()
    services.index.replace_pods(pods, [pod(name, Ready=str(i % CLOSED_EACH != 0)) for i, name in enumerate(names)])
    services.start()
    if not services.wait_synced(30.0):
        raise RuntimeError("no verdicts")
    for _ in range(INHERITED_KICKS):  # those of the start
        services.board.before_kick()
        services.board.after_kick()
    return services


class Sliced(Reader):
    """The prototype: what is before the empty line is a head, what it says of the length is believed."""

    def __init__(self, heads: Heads | None = None) -> None:
        super().__init__(heads)
        self._rest = b""

    def feed(self, data: bytes | memoryview) -> None:
        self._rest = rest = self._rest + bytes(data)
        start, end, body = rest.partition(b"\r\n\r\n")
        self.within = True
        if not end:
            return
        length = int(start.lower().partition(b"\ncontent-length:")[2].partition(b"\r\n")[0] or 0)
        self.in_body, self.announced_bytes, self.body_bytes = True, length, len(body)
        if len(body) < length:
            return
        method, target, _ = start.split(b" ", 2)
        self.complete.append(Request(method, target, b"", body, True))
        self.within, self._rest, self.body_bytes = False, b"", 0


class Strangers(Heads):
    """Heads of which none is known: each is parsed."""

    def find(self, data: bytes | memoryview) -> Request | None:  # noqa: ARG002 - as upstream
        return None

    def learn(self, data: bytes | memoryview, request: Request) -> None: ...


class _Gunicorns:
    """gunicorn's parser in the place of httptools'."""

    def __init__(self, reader: Reader) -> None:
        self._protocol = PythonProtocol(
            reader.on_message_begin,
            reader.on_url,
            reader.on_header,
            reader.on_headers_complete,
            reader.on_body,
            reader.on_message_complete,
        )

    def feed_data(self, data: bytes | memoryview) -> None:
        try:
            self._protocol.feed(data)
        except ParseError as e:
            raise HttpParserError(str(e)) from e
        if self._protocol.is_complete:
            self._protocol.reset()

    def get_method(self) -> bytes:
        method: bytes = self._protocol.method
        return method

    def get_http_version(self) -> str:
        return "{}.{}".format(*self._protocol.http_version)

    def should_keep_alive(self) -> bool:
        return bool(self._protocol.should_keep_alive)


class Gunicorns(Reader):
    def __init__(self, heads: Heads | None = None) -> None:
        super().__init__(heads)
        self._parser: Any = _Gunicorns(self)


# How a connection reads, and which heads are known.
READERS: dict[str, tuple[type[Reader], type[Heads]]] = {
    "sliced": (Sliced, Strangers),
    "known": (Reader, Heads),
    "httptools": (Reader, Strangers),
    "gunicorn": (Gunicorns, Strangers),
}
Message = dict[str, Any]


class Asgi(Application):  # type: ignore[misc]
    """gunicorn's own ASGI worker, with nothing between it and the answer."""

    def __init__(self, listener: socket.socket) -> None:
        self._bind = f"fd://{listener.detach()}"
        super().__init__()

    def load_config(self) -> None:
        options = {"bind": self._bind, "worker_class": "asgi", "workers": 1, "keepalive": 75, "loglevel": "warning"}
        for key, value in {**options, "control_socket_disable": True, "asgi_lifespan": "off"}.items():
            self.cfg.set(key, value)

    def load(self) -> Callable[..., Awaitable[None]]:
        services = filled()

        async def answer(_scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[..., Any]) -> None:
            body, more = b"", True
            while more:
                message = await receive()
                body, more = body + message.get("body", b""), message.get("more_body", False)
            reply = answer_filter(services, body)
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(reply.body))]
            await send({"type": "http.response.start", "status": reply.status, "headers": headers})
            await send({"type": "http.response.body", "body": reply.body})

        return answer


class _Healthy:
    def live(self) -> tuple[bool, bytes]:
        return True, b"{}"

    def ready(self) -> tuple[bool, bytes]:
        return True, b"{}"


def serve(name: str, listener: socket.socket) -> int:
    """Until it is ended."""
    if name == "asgi":
        return run(Master(Asgi(listener)))
    connection.Reader, loop.Heads = READERS[name]  # type: ignore[misc]
    listener.listen(64)
    listener.setblocking(False)
    one = Loop(Routes(filled(), _Healthy()), chores=lambda monotonic: monotonic + CHORES_EVERY_S)
    one.open([listener])
    one.run()
    return 0


def main() -> int:
    listener = listen("127.0.0.1", 0)
    threading.Thread(target=lambda: os._exit(bool(sys.stdin.read())), daemon=True).start()
    print("listening on {}:{}".format(*listener.getsockname()), flush=True)
    return serve(sys.argv[1], listener)


if __name__ == "__main__":
    sys.exit(main())
