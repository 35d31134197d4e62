"""A server that serves while a block runs."""

import contextlib
import socketserver
import threading

from tools.kit.serving import serving


def test_after_a_block_that_failed_the_thread_has_ended_and_the_socket_is_closed() -> None:
    server = socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler)
    with contextlib.suppress(ZeroDivisionError), serving(server):
        raise ZeroDivisionError
    assert ("serving" in [thread.name for thread in threading.enumerate()], server.fileno()) == (False, -1)
