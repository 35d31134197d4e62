"""python -m tools.bench.rungs: the lowest rung of the ladder, the extender's event loop with nothing behind it.

It says where it listens and ends with its standard input, as the Go programs do.
"""

import os
import socket
import sys
import threading
from http import HTTPStatus
from typing import Any

from extender.serve.http import Answer, Request
from extender.serve.loop import Loop
from extender.serve.routes import Given
from extender.verbs.counts import Lost

REPLY = b'{"Nodes":null,"NodeNames":["one"],"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'
CHORES_EVERY_S = 1.0


class Floor:
    """Answers the same bytes whatever was asked; in the place of `extender.serve.routes.Routes`."""

    def answer(self, _request: Request, *, may_ask: bool) -> Given:
        return Answer(HTTPStatus.OK, REPLY), may_ask, None

    def lost(self, cause: Lost, number: int = 1) -> None:
        raise AssertionError(f"{number} connections lost: {cause}")


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    threading.Thread(target=lambda: os._exit(bool(sys.stdin.read())), daemon=True).start()
    floor: Any = Floor()
    loop = Loop(floor, chores=lambda monotonic: monotonic + CHORES_EVERY_S)
    loop.open([listener])
    print("listening on {}:{}".format(*listener.getsockname()), flush=True)
    loop.run()


if __name__ == "__main__":
    main()
