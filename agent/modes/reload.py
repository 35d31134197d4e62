"""The configuration file while the agent runs: what was changed there holds without a restart, as far as it can.

Looked at every two seconds, and at once at SIGHUP. The path is followed anew each time, so a ConfigMap's volume, which
swaps a link, is seen. A change counts when the file has been the same at two looks: half of a file that is being
written may be a valid one. What cannot be used is refused as a whole, with one line, and the old stays in force.

Taken at once: `checks` with `profile`, the health pods with what counts for each, and `log.level`. All else counts at
the next start; one line says so and names it.
"""

import logging
import os
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from agent import settings as reader
from agent.checks.catalogue import check_spec
from agent.checks.engine import CheckEngine
from agent.modes.pod_network import Around
from agent.opinion.settings import HealthPodsSection, without_checks, without_health_pods
from agent.settings import Settings
from component.lifecycle import Service, StartFailed
from component.loop import Loop
from component.settings import SettingsError
from component.text import one_line

log = logging.getLogger(__name__)

LOOK_S = 2.0
STUCK_S = 30.0  # a file on a disk that hangs
TAKEN = ("checks", "profile", "log")  # without a restart
REFUSED = "configuration refused, the old one stays in force"
SELECTOR_LIMIT_BYTES = 128  # in a line of the log

Signature = tuple[int, ...]


@runtime_checkable
class Follower(Protocol):
    """A service of a mode that takes more of the file than its checks, before they are taken.

    Raises StartFailed where it cannot: then it is as it was, and nothing of the file is taken.
    """

    def reloaded(self, settings: Settings) -> None: ...


class Reloader:
    """A Service. `services`: the mode's, of which the checks' engine is told, and those that follow the file."""

    name = "reload"

    def __init__(
        self,
        path: str,
        settings: Settings,
        services: Sequence[Service],
        *,
        load: Callable[[str], Settings] = reader.load,
    ) -> None:
        self._path = path
        self._started_with = settings
        self._settings = settings
        self._engine = next((service for service in services if isinstance(service, CheckEngine)), None)
        self._follower = next((service for service in services if isinstance(service, Follower)), None)
        self._around = next((service.surroundings for service in services if isinstance(service, Around)), None)
        self._load = load
        self._loop = Loop("reload", self._turn, stuck_after_s=STUCK_S, first_pause_s=LOOK_S, join_limit_s=0.1)
        # Of what was read last. Nothing at first: who started us read the file a while ago.
        self._known: Signature = ()
        self._seen: Signature = ()
        self._asked = False

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def healthy(self, monotonic: float) -> bool:
        return self._loop.healthy(monotonic)

    def request(self) -> None:
        """Reads the file now, changed or not. Never waits."""
        self._asked = True
        self._loop.wake()

    def look(self) -> None:
        """Reads the file where it has changed, and is the same as at the last look."""
        now = signature(self._path)
        settled, self._seen = now == self._seen, now
        if self._asked or (settled and now != self._known):
            asked, self._asked, self._known = self._asked, False, now
            self._reload(asked=asked)

    def _turn(self) -> float:
        self.look()
        return LOOK_S

    def _reload(self, *, asked: bool) -> None:
        try:
            loaded = self._load(self._path)
        except SettingsError as e:
            log.error(REFUSED, extra={"error": str(e)})
            return
        if loaded == self._settings and not asked:
            return
        later = needing_restart(self._started_with, loaded)
        if "mode" in later:
            log.warning("another mode counts at the next start, nothing was changed", extra={"mode": loaded.mode})
            return
        if later:
            log.warning("settings were changed that count at the next start", extra={"keys": ", ".join(later)})
        try:
            if self._follower is not None:
                self._follower.reloaded(loaded)
        except StartFailed as e:
            log.error(REFUSED, extra={"error": str(e)})
            return
        before, self._settings = self._settings, loaded
        logging.getLogger().setLevel(loaded.log.level.upper())
        facts = differences(before, loaded)
        if self._engine is not None and any(facts.values()):
            state_file = self._started_with.state_file
            self._engine.replace(
                [check_spec(check, state_file=state_file, around=self._around) for check in loaded.checks]
            )
        facts["moved"] = ", ".join(moved(before, loaded))
        facts |= differing_pods(before, loaded)
        log.info("configuration read again", extra={"checks": len(loaded.checks), **facts})


def needing_restart(before: Settings, after: Settings) -> list[str]:
    """The keys of the file that differ and are not taken while the agent runs."""
    return [
        field.encode_name
        for field in msgspec.structs.fields(Settings)
        if field.name not in TAKEN and _waits(before, field.name) != _waits(after, field.name)
    ]


def _waits(settings: Settings, key: str) -> object:
    """What of the key is not taken while the agent runs."""
    if key == "node" and settings.node is not None:
        return without_health_pods(settings.node)
    return getattr(settings, key)


def differences(before: Settings, after: Settings) -> dict[str, str]:
    """The names of checks, for a line of the log."""
    old, new = ({check.name: check for check in settings.checks} for settings in (before, after))
    return {
        "added": ", ".join(name for name in new if name not in old),
        "changed": ", ".join(name for name in new if name in old and new[name] != old[name]),
        "gone": ", ".join(name for name in old if name not in new),
    }


def moved(before: Settings, after: Settings) -> list[str]:
    """The names of checks that are named for other health pods than before."""
    return sorted({name for name, _ in _named(before) ^ _named(after)})


def _named(settings: Settings) -> set[tuple[str, HealthPodsSection]]:
    return {(name, without_checks(one)) for one in _health_pods(settings) for name in one.checks or ()}


def differing_pods(before: Settings, after: Settings) -> dict[str, str]:
    """The entries of node.healthPods, for a line of the log."""
    old, new = ({without_checks(one): None for one in _health_pods(settings)} for settings in (before, after))
    return {
        "health_pods_added": ", ".join(_spelled(one) for one in new if one not in old),
        "health_pods_gone": ", ".join(_spelled(one) for one in old if one not in new),
    }


def _spelled(pods: HealthPodsSection) -> str:
    return one_line(f"{pods.namespace}/{pods.label_selector}", SELECTOR_LIMIT_BYTES)


def _health_pods(settings: Settings) -> Sequence[HealthPodsSection]:
    return () if settings.node is None else settings.node.health_pods


def signature(path: str) -> Signature:
    """Changes with the file, also where a link on the way leads elsewhere; empty where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a path as it was given
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
