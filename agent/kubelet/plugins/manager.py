"""Registers the plugins whose sockets lie in a folder, and deregisters those that are gone: pluginmanager of v1.36.3.

Once a second the folder is read (a kubelet has the kernel tell it) and brought together with what is registered.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from agent.cri.base import Trouble
from agent.kubelet.plugins.base import Plugin, PluginError, PluginInfo
from agent.kubelet.plugins.desired_state import Failed, Registered, failed, to_deregister, to_register
from agent.kubelet.plugins.handlers import Handler
from agent.kubelet.plugins.sockets import Version, sockets
from component.loop import Loop

log = logging.getLogger(__name__)

TURN_S = 1.0
CONNECT_S, INFO_S, NOTIFY_S = 10.0, 1.0, 5.0
MOST_AT_ONCE = 16  # a kubelet has no limit: what is beyond waits for the next turn
STUCK_AFTER_S = 60.0


class PluginManager:
    """A Service. `connect` makes a connection to a socket, and does not wait."""

    name = "plugins"

    def __init__(
        self,
        folder: Path,
        handlers: Mapping[str, Handler],
        connect: Callable[[str], Plugin] | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        start_thread: Callable[[str, Callable[[], None]], None] | None = None,
    ) -> None:
        self._folder = folder
        self._handlers = handlers
        self._connect = connect or _connected
        self._monotonic = monotonic
        self._start_thread = start_thread or _in_a_thread
        self._lock = threading.Lock()  # guards the five below
        self._wanted: dict[str, Version] = {}
        self._registered: dict[str, Registered] = {}
        self._pending: dict[str, Plugin | None] = {}
        self._failures: dict[str, Failed] = {}
        self._said: dict[str, str] = {}  # of a socket: each error once
        self._unreadable = ""
        self._loop = Loop("plugins", self.turn, stuck_after_s=STUCK_AFTER_S, unblock=self._close, monotonic=monotonic)
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    @property
    def registered(self) -> Mapping[str, PluginInfo]:
        """By socket."""
        with self._lock:
            return {socket: one.info for socket, one in self._registered.items()}

    @property
    def wanted(self) -> frozenset[str]:
        """The sockets that were found last."""
        with self._lock:
            return frozenset(self._wanted)

    def turn(self) -> float:
        """Starts what is to be done; returns the seconds until the next turn."""
        wanted = self._look()
        if wanted is None:
            return TURN_S
        monotonic = self._monotonic()
        with self._lock:
            self._wanted = wanted
            gone = to_deregister(wanted, self._registered, self._pending, self._failures, monotonic)
            deregistered = {socket: self._registered.pop(socket) for socket in gone}
            new = to_register(wanted, self._registered, self._pending, self._failures, monotonic)
            new = new[: max(0, MOST_AT_ONCE - len(self._pending))]
            self._pending |= dict.fromkeys(new)
            self._forget(monotonic)
        for socket, one in deregistered.items():
            self._handlers[one.info.type].deregister(one.info.name)
            log.info("plugin deregistered", extra={"socket": socket, "type": one.info.type, "plugin": one.info.name})
        for socket in new:
            try:
                self._start_thread(Path(socket).name, partial(self._try, socket, wanted[socket]))
            except RuntimeError as e:
                self._ended(socket, f"no thread for it: {e}")
        return TURN_S

    def _look(self) -> dict[str, Version] | None:
        """None where the folder cannot be read: then all stays as it is."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            found = sockets(self._folder)
        except OSError as e:
            if str(e) != self._unreadable:
                log.warning("folder of plugins not read", extra={"folder": str(self._folder), "error": e.strerror})
            self._unreadable = str(e)
            return None
        self._unreadable = ""
        return found

    def _forget(self, monotonic: float) -> None:
        """Pauses that are over of sockets that are gone. Called with the lock held."""
        for socket in [s for s, one in self._failures.items() if s not in self._wanted and one.is_over(monotonic)]:
            del self._failures[socket]
            self._said.pop(socket, None)

    def _try(self, socket: str, version: Version) -> None:
        error = "it could not be tried"
        try:
            self._register(socket, version)
            error = ""
        except PluginError as e:
            error = str(e)
        finally:
            self._ended(socket, error)

    def _ended(self, socket: str, error: str) -> None:
        with self._lock:
            self._pending.pop(socket, None)
            if error:
                self._failures[socket] = failed(self._failures.get(socket), self._monotonic())
            else:
                self._failures.pop(socket, None)
            is_new = self._said.get(socket, "") != error
            self._said[socket] = error
            if not error:
                del self._said[socket]
        if error and is_new and not self._loop.stopping:
            log.warning("plugin not registered", extra={"socket": socket, "error": error})

    def _register(self, socket: str, version: Version) -> None:
        """Raises PluginError."""
        plugin = self._connect(socket)
        with self._lock:
            self._pending[socket] = plugin
        try:
            plugin.connect(CONNECT_S)
            info = plugin.info(INFO_S)
            handler = self._handlers.get(info.type)
            why = (
                f"no handler registered for plugin type: {info.type}"
                if handler is None
                else handler.validate(info.name, info.versions)
            )
            if handler is None or why:
                raise self._refused(plugin, why)
            taken = PluginInfo(info.type, info.name, info.endpoint or socket, info.versions)
            with self._lock:
                self._registered[socket] = Registered(version, taken)
            self._hand_over(socket, plugin, taken, handler)
        finally:
            plugin.close()
        log.info("plugin registered", extra={"socket": socket, "type": info.type, "plugin": info.name})

    def _hand_over(self, socket: str, plugin: Plugin, info: PluginInfo, handler: Handler) -> None:
        """It counts as registered before: one that goes meanwhile is deregistered. Raises PluginError."""
        try:
            why = handler.register(info.name, info.versions)
            if why:
                raise self._refused(plugin, why)
            try:
                plugin.notify("", NOTIFY_S)
            except PluginError:
                handler.deregister(info.name)
                raise
        except PluginError:
            with self._lock:
                self._registered.pop(socket, None)
            raise

    def _refused(self, plugin: Plugin, why: str) -> PluginError:
        """The plugin is told. Raises PluginError where it cannot be."""
        plugin.notify(f"RegisterPlugin error -- {why}", NOTIFY_S)
        return PluginError(Trouble.REFUSED, why)

    def _close(self) -> None:
        """Ends the calls that wait."""
        with self._lock:
            plugins = [plugin for plugin in self._pending.values() if plugin is not None]
        for plugin in plugins:
            plugin.close()


def plugin_counts(manager: PluginManager) -> list[tuple[dict[str, str], float]]:
    """Samples of `plugin_manager_total_plugins`, with the kubelet's labels."""
    states = {"actual_state_of_world": manager.registered, "desired_state_of_world": manager.wanted}
    return [({"socket_path": socket, "state": s}, 1.0) for s, sockets in states.items() for socket in sorted(sockets)]


def _in_a_thread(plugin: str, run: Callable[[], None]) -> None:
    threading.Thread(target=run, name=f"plugin-{plugin}", daemon=True).start()


def _connected(socket: str) -> Plugin:
    try:
        # Late, and behind it the load: the messages stand on a package that comes with gRPC.
        from agent.kubelet.plugins.client import Client
    except ImportError as e:
        raise PluginError(Trouble.NO_PACKAGES, e) from None
    return Client(socket)
