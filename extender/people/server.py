"""gunicorn in the foreground around the pages. What is the same everywhere is in gunicorn.conf.py."""

import os
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flask import Flask
from gunicorn.app.base import Application

from component.text import REFERENCE, expand
from extender.feed.mirror import Mirror
from extender.foreground import GunicornLog, Master, StartError, listen, run
from extender.serve.hosts import allowed_hosts, is_ours
from extender.settings import People, Settings
from extender.web.app import create_app
from extender.web.pace import Pace

CONF = Path(__file__).with_name("gunicorn.conf.py")
# Of one receive or send of a client that has begun a request; gunicorn itself would wait for ever. A connection takes
# it over from the socket that it was accepted from.
CLIENT_LIMIT_S = 5
_TIMEVAL = struct.pack("ll", CLIENT_LIMIT_S, 0)


class PeopleLog(GunicornLog):
    """A client that did not send or read for so long is no error of ours."""

    def exception(self, message: str, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        if not isinstance(sys.exception(), BlockingIOError):
            super().exception(message, *arguments, **options)


class Server(Application):  # type: ignore[misc]
    def __init__(self, settings: Settings, listeners: Sequence[socket.socket]) -> None:
        self._settings = settings
        self._bind = [f"fd://{listener.detach()}" for listener in listeners]
        super().__init__()

    def load_config(self) -> None:
        self.load_config_from_file(str(CONF))
        self.cfg.set("bind", self._bind)
        self.cfg.set("loglevel", "debug" if self._settings.log.level == "debug" else "warning")

    def load(self) -> Flask:
        settings = self._settings
        if settings.feed.socket is None:
            raise ValueError("feed.socket is empty")
        people = settings.people
        mirror = Mirror(Path(settings.feed.socket), settings)
        hosts = allowed_hosts(people.address, people.port, (*people.hosts, *addresses(people)[1:]))
        return create_app(
            mirror,
            is_ours=lambda host: is_ours(host.encode("latin-1"), hosts),
            pace=Pace(share=people.processor_percent / 100),
        )


def start_mirror(worker: Any) -> None:  # noqa: ANN401 - gunicorn's Worker
    """Hook post_worker_init."""
    worker.wsgi.extensions["readygate"].start()


def stop_mirror(_arbiter: Any, worker: Any) -> None:  # noqa: ANN401
    """Hook worker_exit. It is called for a worker that failed to load, too."""
    application = getattr(worker, "wsgi", None)
    if isinstance(application, Flask):
        application.extensions["readygate"].stop()


def addresses(people: People, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Where to listen, each once. Raises StartError for a variable that is not set."""
    found = [people.address]
    for written in people.more_addresses:
        address = expand(written, environ)
        missing = REFERENCE.search(address)
        if missing is not None or not address:
            text = f"people.moreAddresses: {written} has no value in the environment; set it, or write an address"
            raise StartError(text, usage=True)
        found.append(address)
    return list(dict.fromkeys(found))


def serve(settings: Settings) -> int:
    """Serve until SIGTERM (0) or SIGINT (130). Also returns in the worker, with its exit code. Raises StartError."""
    people = settings.people
    listeners = [
        listen(address, people.port, section="people", shared=people.shares_port) for address in addresses(people)
    ]
    for listener in listeners:
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            listener.setsockopt(socket.SOL_SOCKET, option, _TIMEVAL)
    return run(Master(Server(settings, listeners)))
