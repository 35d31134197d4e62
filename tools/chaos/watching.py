"""What the caches hold while their API server fails: R03 fault schedules, R07 and R08 silence, R13 a server behind."""

import contextlib
import functools
import itertools
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from unittest.mock import patch

from kube import paths, transport
from kube.auth import Connection
from kube.client import Client
from kube.listing import Page
from kube.reflector import ListerWatcher, Reflector
from tests.scripted.following import Node, Recorder, following, node
from tools.chaos.paths import Path
from tools.fakes.anonymous import Anonymous
from tools.fakes.api_server import FakeApiServer
from tools.fakes.api_store import Change
from tools.kit.waiting import wait_for
from tools.soak.rows import Progress, Trial

SCHEDULES = 200
NAMES = [f"node-{number}" for number in range(6)]
QUIET_WITHIN_S = 10.0
SILENCE_LIMIT_S = 70.0
NOTICED_BY_THE_KERNEL_S = 30.0
NOTICED_BY_US_S = 75.0
WITHOUT_KEEPALIVE = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
HEALED_WITHIN_S = 5.0
BEHIND_S = 60.0
KINDS = ("quiet", "busy")
NEVER = 1e9


class Written(FakeApiServer):
    """versions: of all changes, told or held back."""

    def __init__(self) -> None:
        super().__init__()
        self.versions: set[int] = set()

    def _publish(self, change: Change) -> None:
        self.versions.add(change.version)
        super()._publish(change)


class History(Recorder):
    """A store that keeps watch: each version it is given must be newer than all before, but for those of a list.

    listed: the version of the newest list, for whoever tells it; by it is known what no event needs to bring.
    """

    def __init__(self) -> None:
        super().__init__()
        self.violations: list[str] = []
        self.reached = 0
        self.applied = 0
        self.listed = 0
        self._events: set[int] = set()
        self._spanned: list[tuple[int, int]] = []  # after this version and up to that one a list was read
        self._seen: dict[str, int] = {}

    def missed(self, written: Iterable[int]) -> list[int]:
        """Versions up to the newest that came neither by an event nor by a list."""
        return [
            version
            for version in sorted(written)
            if version <= self.reached
            and version not in self._events
            and not any(after < version <= listed for after, listed in self._spanned)
        ]

    def replace(self, items: Sequence[Node]) -> None:
        self._spanned.append((self.reached, self.listed))
        self.reached = max(self.reached, self.listed)
        for item in items:
            self._see(item, "list")
        gone = set(self._seen) - {item.metadata.name for item in items}
        for name in gone:
            del self._seen[name]
        super().replace(items)

    def upsert(self, item: Node) -> None:
        self._ordered(item)
        self._see(item, "event")
        super().upsert(item)

    def remove(self, item: Node) -> None:
        self._ordered(item)
        self._seen.pop(item.metadata.name, None)
        super().remove(item)

    def _ordered(self, item: Node) -> None:
        version = int(item.metadata.resource_version)
        if version <= self.reached:
            self.violations.append(f"not ordered or not unique: {version} after {self.reached}")
        self.reached = version
        self._events.add(version)

    def _see(self, item: Node, what: str) -> None:
        name, version = item.metadata.name, int(item.metadata.resource_version)
        if version < self._seen.get(name, 0):
            self.violations.append(f"{what} sets {name} back: {version} after {self._seen[name]}")
        self._seen[name] = version
        self.applied += 1


class Schedule(NamedTuple):
    """violations: of order. equal: the store came to what the server has by itself; mended: it did once all watches
    had to list. missed: versions that came neither by an event nor by a list. applied: versions that came."""

    violations: list[str]
    equal: bool
    mended: bool
    missed: int
    applied: int


def hold_schedules(trial: Trial) -> None:
    """R03: each schedule is its own server and its own thirty faults and writes; in the end all is quiet."""
    found: list[Schedule] = []
    progress = Progress(trial.say)
    ends = time.monotonic() + trial.seconds
    while len(found) < SCHEDULES and (time.monotonic() < ends or not found):
        found.append(schedule(random.Random(f"{trial.chance.random()}")))
        progress(f"{len(found)} schedules, {sum(one.applied for one in found)} versions applied")
    violations = [f"schedule {number}: {text}" for number, one in enumerate(found) for text in one.violations]
    trial.tell("schedules", len(found), "")
    trial.tell("versions applied", sum(one.applied for one in found), "")
    trial.at_most(0, "not ordered, not unique, set back", len(violations), "")
    trial.at_most(0, "versions missed", sum(one.missed for one in found), "")
    trial.at_most(0, "lost: unlike the server when all is quiet", sum(not one.equal for one in found), "")
    trial.at_most(0, "unlike it after a list, too", sum(not one.mended for one in found), "")
    for text in violations[:5]:
        trial.say(text)


def schedule(chance: random.Random) -> Schedule:
    with Written() as api:
        for name in NAMES[:3]:
            api.put(node(name))
        history = History()
        with following(api, started=False, pause_s=0.002) as it:
            it.reflector._store = it.store = history
            _tell_lists(it.reflector, history)
            it.reflector.start()
            assert it.reflector.wait_synced(10)
            for _ in range(30):
                _one_step(chance, api)
                if chance.random() < 0.2:
                    time.sleep(0.005)
            api.release_events()
            api.put(node("last", text="x"))

            def alike() -> bool:
                there = {o["metadata"]["name"]: o["metadata"]["resourceVersion"] for o in api.objects("Node")}
                return history.versions == there

            # First without our help: a list would mend whatever was lost, and leave nothing to be seen.
            equal = bool(wait_for(alike, timeout_s=QUIET_WITHIN_S, every_s=0.005))
            missed = history.missed(api.versions)
            api.compact()
            api.cut_watches()
            mended = bool(wait_for(alike, timeout_s=QUIET_WITHIN_S, every_s=0.005))
        return Schedule(history.violations, equal, mended, len(missed), history.applied)


def _tell_lists(reflector: Reflector[Node], history: History) -> None:
    """Of which version each list is, before the store is given it."""
    page = reflector._lister_watcher.page

    def told(*, limit: int | None, more: str = "") -> Page[Node]:
        found = page(limit=limit, more=more)
        history.listed = int(found.resource_version)
        return found

    reflector._lister_watcher.page = told  # type: ignore[method-assign]


def _one_step(chance: random.Random, api: FakeApiServer) -> None:
    name = chance.choice(NAMES)
    steps: list[Any] = [
        *([lambda: api.put(node(name, text=chance.randrange(10**6)))] * 6),
        lambda: api.get("Node", name) and api.delete("Node", name),
        api.bookmark,
        api.end_watches,
        lambda: api.cut_watches(reset=chance.random() < 0.5),
        api.compact,
        api.hold_events,
        api.release_events,
        lambda: api.error_watches(*chance.choice([(410, "Expired"), (429, "TooManyRequests"), (500, "InternalError")])),
        lambda: api.answer_next(chance.choice([403, 410, 429, 500, 503]), watch=chance.random() < 0.5),
        lambda: api.reset_next(watch=chance.random() < 0.5),
        lambda: (api.emit_bytes(None, b'{"type":"MODIFIED","obj'), api.cut_watches()),
        api.cut_connections,
    ]
    chance.choice(steps)()


@contextlib.contextmanager
def _reflecting(port: int, store: Recorder, **options: Any) -> Iterator[Reflector[Node]]:
    """A reflector as the extender has it, through that port."""
    connection = Connection(server=f"http://127.0.0.1:{port}", ssl_context=None, credentials=Anonymous())
    client = Client(connection, user_agent="chaos")
    reflector = Reflector(ListerWatcher(client, paths.nodes(), Node), store, name="nodes", **options)
    reflector.start()
    try:
        assert reflector.wait_synced(10)
        yield reflector
    finally:
        reflector.stop()
        client.close()


def hold_silent_box(trial: Trial) -> None:
    """R08: a box in the middle acknowledges everything and passes nothing on; on a quiet watch and on a busy one."""
    silence_s = min(SILENCE_LIMIT_S, trial.seconds / 3)
    for kind in KINDS:
        with FakeApiServer() as api, Path(_port(api)) as path:
            store = Recorder()
            with _reflecting(path.port, store, silence_limit_s=silence_s), _writing(api, busy=kind == "busy"):
                _until_equal(api, store, 5.0)
                path.silent, path.accepted = True, 0
                noticed_s = _until(lambda: path.accepted > 0, timeout_s=silence_s + 10)
                trial.say(f"{kind}: a new connection after {noticed_s:.1f} s")
                path.silent = False
                healed_s = _until_equal(api, store, 30.0)
                trial.at_most(silence_s + 5, f"{kind}: noticed", noticed_s, "s")
                trial.at_most(HEALED_WITHIN_S, f"{kind}: equal after it healed", healed_s, "s")


def hold_black_hole(trial: Trial) -> None:
    """R07: packets in both directions are dropped, nobody is told; then the same where the kernel does not look whether
    the other side is still there, so that only the silence tells. Needs root, and iptables."""
    iptables = shutil.which("iptables") or shutil.which("iptables", path="/usr/sbin:/sbin")
    if iptables is None:
        raise RuntimeError("iptables is missing: apt-get install iptables")
    for kind in KINDS:
        _into_a_black_hole(trial, iptables, kind, NOTICED_BY_THE_KERNEL_S)
    with patch.object(transport, "SOCKET_OPTIONS", WITHOUT_KEEPALIVE):
        for kind in KINDS:
            _into_a_black_hole(trial, iptables, kind, NOTICED_BY_US_S, ", keepalive off")


def _into_a_black_hole(trial: Trial, iptables: str, kind: str, within_s: float, how: str = "") -> None:
    with FakeApiServer() as api:
        store = Recorder()
        with _reflecting(_port(api), store) as reflector, _writing(api, busy=kind == "busy"):
            _until_equal(api, store, 5.0)
            left = functools.partial(_has_left, reflector, _leavings(reflector))
            with _dropped(iptables, _port(api)):
                noticed_s = _until(left, timeout_s=SILENCE_LIMIT_S + 10)
                trial.say(f"{kind}{how}: noticed after {noticed_s:.1f} s")
            healed_s = _until_equal(api, store, 60.0)
            trial.at_most(within_s, f"{kind}{how}: noticed", noticed_s, "s")
            trial.at_most(HEALED_WITHIN_S, f"{kind}{how}: equal after it healed", healed_s, "s")


def _leavings(reflector: Reflector[Node]) -> int:
    """How often it has left a watch, in all ways."""
    return sum(n for name, n in reflector.counters.items() if name == "watch_restarts" or name.startswith("errors"))


def _has_left(reflector: Reflector[Node], before: int) -> bool:
    return _leavings(reflector) > before


@contextlib.contextmanager
def _dropped(iptables: str, port: int) -> Iterator[None]:
    rules = [["OUTPUT", "-o", "lo", "-p", "tcp", side, str(port), "-j", "DROP"] for side in ("--dport", "--sport")]
    try:
        for rule in rules:
            subprocess.run([iptables, "-w", "-I", *rule], check=True, capture_output=True, text=True)
        yield
    finally:
        for rule in rules:
            subprocess.run([iptables, "-w", "-D", *rule], check=False, capture_output=True)


def hold_replica_behind(trial: Trial) -> None:
    """R13: two API servers, one behind the other; the caller is led to this one and to that one."""
    behind_s = min(BEHIND_S, trial.seconds / 3)
    with FakeApiServer() as leader, FakeApiServer() as behind, Path(_port(leader)) as path:
        history = History()
        stop = threading.Event()
        late: list[tuple[float, str, int]] = []
        numbers = itertools.count()

        def write() -> None:
            """The same writes to both, so that both give the same versions; to one of them later. No write is without a
            change: that would be no new version."""
            while not stop.wait(0.05):
                name, number = trial.chance.choice(NAMES), next(numbers)
                leader.put(node(name, text=number))
                late.append((time.monotonic() + behind_s, name, number))
                while late and late[0][0] <= time.monotonic():
                    _, name, number = late.pop(0)
                    behind.put(node(name, text=number))

        for name in NAMES:
            leader.put(node(name))
            behind.put(node(name))
        writer = threading.Thread(target=write, daemon=True)
        with _reflecting(path.port, history) as reflector:
            writer.start()
            version = shown = falls = changes = 0
            progress = Progress(trial.say)
            ends, turn_at = time.monotonic() + trial.seconds, time.monotonic() + 5.0
            while time.monotonic() < ends:
                version = int(reflector.resource_version)
                falls += version < shown
                shown = max(shown, version)
                if time.monotonic() >= turn_at:
                    turn_at = time.monotonic() + 5.0
                    changes += 1
                    path.target = _port(behind if changes % 2 else leader)
                    path.cut()
                progress(f"version {version}, {changes} changes of server, {falls} falls")
                time.sleep(0.005)
            path.target = _port(leader)
            path.cut()
            stop.set()
            writer.join()
            equal_s = _until_equal(leader, history, 60.0)
            trial.say(f"in the end: {dict(reflector.counters)}, at {reflector.resource_version} of {leader.version}")
        set_back = [text for text in history.violations if "sets" in text]
        trial.tell("changes of server", changes, "")
        trial.tell("the one is behind by", behind_s, "s")
        trial.at_most(leader.version, "version of the one behind", behind.version, "")
        trial.at_most(0, "the cache's version fell", falls, "times")
        trial.at_most(0, "objects set back to what they had been", len(set_back), "")
        trial.at_most(30, "equal to the one ahead, after the last change", equal_s, "s")


@contextlib.contextmanager
def _writing(api: FakeApiServer, *, busy: bool) -> Iterator[None]:
    """busy: ten writes a second, all the time; else the server sends a bookmark now and then."""
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.wait(0.1 if busy else 5.0):
            number += 1
            if busy:
                api.put(node("busy", text=number))
            else:
                api.bookmark()

    api.put(node("there"))
    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _until(happened: Callable[[], bool], *, timeout_s: float) -> float:
    """Seconds until it had, NEVER if it has not."""
    began = time.monotonic()
    return time.monotonic() - began if wait_for(happened, timeout_s=timeout_s) else NEVER


def _until_equal(api: FakeApiServer, store: Recorder, timeout_s: float) -> float:
    """Seconds until a write of now has come to the store."""
    api.put(node("marker", text=time.monotonic()))

    def come() -> bool:
        found = api.get("Node", "marker")
        return found is not None and store.versions.get("marker") == found["metadata"]["resourceVersion"]

    return _until(come, timeout_s=timeout_s)


def _port(api: FakeApiServer) -> int:
    return int(api.url.rpartition(":")[2])
