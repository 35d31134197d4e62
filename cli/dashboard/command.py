"""`readygate dashboard`: forwards a local port to the status API of one extender, for a browser.

The port listens on loopback, where every user and program of this machine can connect to it, as with `kubectl
port-forward`. Each connection of a browser is one port-forward, so a replica that is replaced ends only the connections
that are open.
"""

import argparse
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from typing import NoReturn

from cli.shared import extender_client, terminal
from cli.shared.arguments import Commands, add_api, command
from cli.shared.errors import EXIT_UNKNOWN, CommandError
from cli.shared.merge_answers import decode, freshest
from cli.shared.port_forward import BLOCK_BYTES, GOODBYE_S, ForwardError, PortForward, Relay
from component.command import EXIT_USAGE
from component.text import one_line
from extender.web.report import GatesTold
from kube.errors import CredentialsInvalid

ADDRESS = "127.0.0.1"
PAGE = "/api/v1/nodes"
REST_BLOCKS = 32
CONNECTIONS_MOST = 32  # a browser opens six at most to one server
# Does not name the cause, which contains host names: a web page whose name resolves to loopback may read this answer.
UNREACHABLE = (
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"readygate dashboard cannot reach an extender; its terminal shows why.\n"
)
EXIT_CODES = """\
  0    ended by SIGTERM
  3    no extender can be reached
"""


def register(commands: Commands) -> None:
    parser = command(
        commands, "dashboard", "forward a local port to the status API of an extender, for a browser", EXIT_CODES
    )
    add_api(parser)
    parser.add_argument(
        "--pod", default="", metavar="NAME", help="pod of an extender; default: the extender with the newest data"
    )
    parser.add_argument("--port", type=port, default=0, help="local port; default: a free port")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.set_defaults(run=run)


def port(text: str) -> int:
    number = int(text)
    if not 0 <= number < 2**16:
        raise ValueError(text)
    return number


def run(arguments: argparse.Namespace) -> int:
    """Raises CommandError."""
    with terminal.progress("looking for the extenders"):
        choice = Choice(partial(extender_client.replicas, arguments), arguments.pod)
        chosen = choice.forward()
    try:
        listener = socket.create_server((ADDRESS, arguments.port))
    except OSError as e:
        raise CommandError(
            f"cannot listen at {ADDRESS}:{arguments.port}: {os.strerror(e.errno or 0)}; choose another --port"
        ) from e
    with listener:
        url = f"http://{ADDRESS}:{listener.getsockname()[1]}{PAGE}"
        print(f"{url}\n{chosen.pod} on {chosen.host}; every user of this machine can open it; Ctrl-C ends it")
        sys.stdout.flush()
        if arguments.open:  # a browser in the terminal blocks until it ends
            threading.Thread(target=webbrowser.open, args=(url,), name="browser", daemon=True).start()
        try:
            _serve(listener, choice)
        except SystemExit:  # SIGTERM: the usual end of the command
            return 0


class Choice:
    """Chooses the extender that is shown, and another one when it cannot be reached. Thread-safe."""

    def __init__(self, replicas: Callable[[], extender_client.Replicas], only: str) -> None:
        """only: the name of the one pod that may be chosen, "" for any."""
        self._replicas = replicas
        self._only = only
        self._lock = threading.Lock()  # held while the replicas are asked: each connection needs the outcome
        self._chosen: PortForward | None = None
        self._shown = ""
        self._problem = ""

    def forward(self) -> PortForward:
        """Raises CommandError where no extender can be reached."""
        with self._lock:
            if self._chosen is None:
                self._chosen = self._choose()
                if self._shown not in ("", self._chosen.pod):
                    print(f"now {self._chosen.pod} on {self._chosen.host}", file=sys.stderr)
                self._shown, self._problem = self._chosen.pod, ""
            return self._chosen

    def leave(self, forward: PortForward, problem: str) -> None:
        """Must be called when the extender could not be reached. The next forward() chooses again."""
        with self._lock:
            if self._chosen is forward:
                self._chosen = None
        self.complain(problem)

    def complain(self, problem: str) -> None:
        """Prints one line on standard error, once for each change."""
        if problem != self._problem:
            self._problem = problem
            print(f"readygate dashboard: {one_line(problem, 1000)}", file=sys.stderr)

    def _choose(self) -> PortForward:
        with closing(self._replicas()) as replicas:
            replies = decode(replicas.ask("gates", only=self._only), GatesTold)
            best = freshest(replies.answers)
            forward = None if best is None else replicas.forward(best[0])
        if self._only and not replies.asked:
            raise CommandError(f"there is no extender {self._only}; see --pod", code=EXIT_USAGE)
        if forward is None:
            raise CommandError("; ".join(dict.fromkeys(replies.problems)), code=EXIT_UNKNOWN)
        return forward


def _serve(listener: socket.socket, choice: Choice) -> NoReturn:
    """Accepts connections until a signal ends the command."""
    slots = threading.Semaphore(CONNECTIONS_MOST)

    def carry(browser: socket.socket) -> None:
        try:
            with browser, suppress(OSError):
                _carry(browser, choice)
        finally:
            slots.release()

    while True:
        slots.acquire()
        browser, _ = listener.accept()
        threading.Thread(target=carry, args=(browser,), name="dashboard", daemon=True).start()


def _carry(browser: socket.socket, choice: Choice) -> None:
    """Serves one connection of a browser."""
    for _ in range(2):  # its pod may have been replaced, or its host may be down: then another extender is chosen
        try:
            forward = choice.forward()
        except CommandError as e:
            choice.complain(str(e))
            break
        try:
            relay = Relay(forward.open(extender_client.DEADLINE_S))
        except (ForwardError, CredentialsInvalid) as e:
            choice.leave(forward, str(e))
            continue
        relay.run(browser)
        if not relay.complaint:
            return
        choice.leave(forward, forward.explain(relay.complaint))
        if relay.received:
            return
        break  # the relay has read the request
    browser.settimeout(GOODBYE_S)
    browser.sendall(UNREACHABLE)
    browser.shutdown(socket.SHUT_WR)
    for _ in range(REST_BLOCKS):  # what is unread when a connection is closed makes the kernel drop the answer
        if not browser.recv(BLOCK_BYTES):
            return
