"""gunicorn's worker with one serving thread. It uses gunicorn's documented interface only.

gunicorn keeps the process: it binds, forks, restarts a dead or hung worker, and passes signals on. This module uses the
interface of gunicorn's own asynchronous workers: `sockets`, `alive`, `ppid`, `notify()`, and the pipe that its signal
handlers write to.
"""

import logging
import math
import os
import resource
import time
from collections.abc import Sequence

import msgspec
from gunicorn.workers import base

from component import lifecycle
from component.command import EXIT_FAILED
from component.lifecycle import Service
from extender.process import huge_pages
from extender.process.control_socket import Message, WorkerEnd
from extender.process.services import Services
from extender.process.watchdog import Watchdog
from extender.serve import limits
from extender.serve.allowed_hosts import allowed_hosts
from extender.serve.loop import Loop
from extender.serve.routes import Routes
from extender.serve.tls import Certificates

log = logging.getLogger(__name__)

NOTIFY_EVERY_S = 1.0
# Calls wait so long in the backlog for the first snapshot, so that a worker that replaces a dead one loses none.
# kube-scheduler waits for a second. Then it is answered that nothing is synced, which costs it no time.
OPEN_LIMIT_S = 0.5
SYNC_LOOK_S = 0.02
# While stopping. An idle client may be about to send a request: it is answered, and its connection ends with the
# answer.
DRAIN_IDLE_S = 0.2
DRAIN_LIMIT_S = 0.7
# While retiring, when another worker accepts the new connections. A busy scheduler asks within this time, and changes
# over with that answer. A scheduler that was idle for so long is unlikely to ask at the moment its connection is
# closed.
RETIRE_IDLE_S = 10.0
RETIRE_LIMIT_S = 15.0


class Worker(base.Worker):  # type: ignore[misc]
    """Serves gunicorn's sockets until gunicorn ends it.

    link, replaces: set before the fork, see `arbiter.before_fork`.
    """

    link: WorkerEnd
    replaces: bool
    _loop: Loop
    _opens_by: float  # when it accepts connections, synced or not
    _opened = False
    _synced = False

    def run(self) -> None:
        services: Services = self.wsgi
        self._services = services
        listen = services.settings.listen
        # from the master: the files may be unusable at this moment
        certificates: Certificates | None = self.app.certificates
        port = self.sockets[0].getsockname()[1]
        hosts = allowed_hosts(listen.address, port, listen.hosts)
        files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._watchdog = Watchdog()
        others = (self._watchdog,) if certificates is None else (self._watchdog, certificates)
        self._loop = Loop(
            Routes(services, _Health(services, others), hosts),
            chores=self._chores,
            stream=None if certificates is None else certificates.stream,
            connections_max=limits.connections_max(files_max),
        )
        self._loop.watch(self.PIPE[0], self._woken)
        self._loop.watch(self.link.fileno(), self._told)
        self._opens_by = math.inf if self.replaces else services.monotonic() + OPEN_LIMIT_S
        self._huge_pages = huge_pages.of_this_process(time.sleep)
        lifecycle.start_all(others)
        try:
            self._loop.run()
        finally:
            self._watchdog.stop()

    def _woken(self) -> None:
        """A signal has arrived; its handler has recorded it."""
        os.read(self.PIPE[0], 4096)

    def _told(self) -> None:
        for word in self.link.read():
            match word:
                case Message.GONE:
                    os._exit(EXIT_FAILED)  # nothing here needs saving, and a new server needs the port
                case Message.STOP:
                    self.alive = False
                case Message.RETIRE:
                    self._leave(idle_s=RETIRE_IDLE_S, limit_s=RETIRE_LIMIT_S)
                case Message.ACCEPT:
                    self._opens_by = 0.0

    def _chores(self, monotonic: float) -> float:
        self.notify()
        self._watchdog.beat()
        if not self.alive:
            if not self._services.stopping:
                self._services.begin_to_stop()
                self._leave(idle_s=DRAIN_IDLE_S, limit_s=DRAIN_LIMIT_S)
        elif not self._synced:
            self._look(monotonic)
            if not self._synced:
                return monotonic + SYNC_LOOK_S
        return monotonic + NOTIFY_EVERY_S

    def _look(self, monotonic: float) -> None:
        """Checks for the first snapshot, and whether to accept connections without it."""
        synced = self._services.synced
        if not self._opened and (synced or monotonic >= self._opens_by):
            self._opened = True
            if not synced:
                log.warning("caches not synced; answering Error")
            self._loop.open(self.sockets)
        if synced:
            self._synced = True
            self._services.settle()
            log.info("synced", extra={"nodes": len(self._services.board.snapshot.nodes)})
            self.link.tell_synced()
            if self._huge_pages is not None:
                self._huge_pages.start()

    def _leave(self, *, idle_s: float, limit_s: float) -> None:
        """Accepts no more connections, and ends when the existing ones have received their answers."""
        self._opened = True
        self._loop.drain(idle_s=idle_s, limit_s=limit_s)
        for listener in self.sockets:  # also one that was never opened: a call would wait in its backlog
            listener.close()


class _Health:
    def __init__(self, services: Services, others: Sequence[Service]) -> None:
        self._services, self._others = services, others

    def live(self) -> tuple[bool, bytes]:
        stuck = [*self._services.unhealthy(), *lifecycle.unhealthy(self._others, self._services.monotonic())]
        return not stuck, msgspec.json.encode({"live": not stuck, "stuck": stuck})

    def ready(self) -> tuple[bool, bytes]:
        services = self._services
        why = services.why_not()
        monotonic = services.monotonic()
        caches = {}
        for name, cache in services.caches.items():
            age_s = cache.age_s(monotonic)
            caches[name] = {"synced": cache.synced, "ageSeconds": None if math.isinf(age_s) else round(age_s, 3)}
            if (lag_s := cache.lag_s) is not None:  # read once: the next time it may be too old to report
                caches[name]["lagSeconds"] = round(lag_s, 3)
        return not why, msgspec.json.encode({"ready": not why, "why": why, "caches": caches})
