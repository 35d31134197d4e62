"""gunicorn's worker as we have it: one thread that serves, by gunicorn's documented interface only.

gunicorn keeps the process: it binds, forks, restarts what has died or hangs, and passes signals on. What is used of it
is what its own workers for other event loops use: `sockets`, `alive`, `ppid`, `notify()`, the pipe that its signal
handlers wake up.
"""

import math
import os
import resource
from http import HTTPStatus
from typing import Any

import msgspec
from gunicorn.workers import base

from extender.serve import limits
from extender.serve.hosts import allowed_hosts
from extender.serve.http import Answer
from extender.serve.loop import Loop
from extender.serve.routes import Others, Routes
from extender.services import Services
from extender.web.app import create_app

NOTIFY_EVERY_S = 1.0
# While stopping. One on whose connection nothing is under way may be about to ask: that is answered, with its end.
DRAIN_IDLE_S = 0.2
DRAIN_LIMIT_S = 0.7


class Worker(base.Worker):  # type: ignore[misc]
    """Serves what gunicorn bound until gunicorn says that it is enough."""

    _loop: Loop

    def run(self) -> None:
        services: Services = self.wsgi
        self._services = services
        listen = services.settings.listen
        port = self.sockets[0].getsockname()[1]
        hosts = allowed_hosts(listen.address, port, listen.hosts)
        files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._loop = Loop(
            Routes(services, _Health(services), hosts, _people(services)),
            chores=self._chores,
            connections_max=limits.connections_max(files_max),
        )
        self._loop.watch(self.PIPE[0], self._woken)
        self._loop.open(self.sockets)
        self._loop.run()

    def _woken(self) -> None:
        """A signal has come; what it is about was said by its handler."""
        os.read(self.PIPE[0], 4096)

    def _chores(self, monotonic: float) -> float:
        self.notify()
        if self.ppid != os.getppid():
            self.alive = False
        if not self.alive and not self._loop.draining:
            self._services.stopping = True
            self._loop.drain(idle_s=DRAIN_IDLE_S, limit_s=DRAIN_LIMIT_S)
        return monotonic + NOTIFY_EVERY_S


class _Health:
    def __init__(self, services: Services) -> None:
        self._services = services

    def live(self) -> tuple[bool, bytes]:
        stuck = self._services.unhealthy()
        return not stuck, msgspec.json.encode({"live": not stuck, "stuck": stuck})

    def ready(self) -> tuple[bool, bytes]:
        services = self._services
        why = services.why_not()
        monotonic = services.monotonic()
        caches = {}
        for name, cache in services.caches.items():
            age_s = cache.age_s(monotonic)
            caches[name] = {"synced": cache.synced, "ageSeconds": None if math.isinf(age_s) else round(age_s, 3)}
        return not why, msgspec.json.encode({"ready": not why, "why": why, "caches": caches})


def _people(services: Services) -> Others:
    """What people read, until all of it is asked for at their own listener."""
    client = create_app(services).test_client()

    def answer(method: str, target: str) -> Answer:
        response: Any = client.open(target, method=method)
        return Answer(
            HTTPStatus(response.status_code),
            response.data,
            response.headers.get("Allow", "").encode(),
            response.content_type,
        )

    return answer
