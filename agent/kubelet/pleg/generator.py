"""The thread that lists, and what everybody asks of it: events of the runtime, health, a look at one pod."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable

from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.counts import Clocked, Running
from agent.kubelet.pleg.evented import FAILURES, Stream, take_event
from agent.kubelet.pleg.events import PodEvent
from agent.kubelet.pleg.relist import EVENTED, GENERIC, Listed, Listing, Pace, Relist, with_kept_ip
from agent.wire.containers import ContainerEvent, RuntimePod
from agent.wire.semantics import Semantics
from component.loop import Loop

log = logging.getLogger(__name__)

MOST_REQUESTS = 200
LOOK_S = 1.0  # at whether events still come
STUCK_AFTER_S = EVENTED.threshold_s  # a list that hangs makes the node not ready long before


class EventGenerator:
    """A Service. `deliver` takes an event in whatever thread it is told, unless it has no room (False); it must not
    wait. `events_come`: does the runtime tell by itself now? None: it never does, so lists come every second.
    `evented`: the pace while events come. Each second without them makes a list, and after `most_failures` of these
    lists alone are believed.

    Healthy, as a Service, while its thread lives; what becomes of the lists is told by `unhealthy`.
    """

    name = "pod events"

    def __init__(
        self,
        runtime: Listing,
        cache: Cache,
        deliver: Callable[[PodEvent], bool],
        *,
        events_come: Callable[[float], bool] | None,
        semantics: Semantics,
        evented: Pace = EVENTED,
        most_failures: float = FAILURES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cache = cache
        self._runtime = runtime
        self._deliver = deliver
        self._events_come = events_come
        self._semantics = semantics
        self._monotonic = monotonic
        self._stream = Stream(in_use=events_come is not None, most_failures=most_failures)
        self._relist = Relist(
            runtime,
            cache,
            deliver,
            pace=evented if self._stream.in_use else GENERIC,
            syncs_reinspected=semantics.syncs_reinspected,
        )
        self._lost = 0  # events of the runtime's
        self._clocked = Clocked()
        self.durations = self._clocked.durations
        self._requests: deque[tuple[str, float]] = deque()
        self._next_relist = self._next_look = -math.inf
        self._failing: set[str] = set()  # pods that cannot be inspected; "": the list as a whole
        self._loop = Loop("pod-events", self.turn, stuck_after_s=STUCK_AFTER_S, monotonic=monotonic)
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    @property
    def evented(self) -> bool:
        """Are the runtime's own events believed?"""
        return self._stream.in_use

    @property
    def discarded(self) -> int:
        """Events that there was no room for."""
        return self._relist.discarded + self._lost

    @property
    def listed_at(self) -> float | None:
        """Monotonic: when the last list began that there was."""
        return self._relist.listed_at

    @property
    def running(self) -> Running:
        """By that list."""
        return self._relist.running

    def unhealthy(self, monotonic: float) -> str:
        """Why, in the kubelet's words; "" while lists come in time."""
        return self._relist.unhealthy(monotonic)

    def take(self, event: ContainerEvent) -> None:
        """What the runtime tells by itself, in its own thread. A pod that it cannot show is looked at soon."""
        monotonic = self._monotonic()  # before the look: whatever wins later has seen as much
        try:
            pod = self._runtime.pod(event.uid)
        except Exception as e:  # noqa: BLE001 - whatever a runtime breaks with
            self._not_inspected(event.uid, e)
            return
        self._lost += take_event(
            event,
            pod,
            monotonic,
            cache=self.cache,
            deliver=self._deliver,
            fix_removed_container_stays_known=self._semantics.fix_removed_container_stays_known,
        )

    def inspect(self, uid: str) -> None:
        """Brings the cache up to date with a pod, now and in this thread: for who has just changed it."""
        monotonic = self._monotonic()
        try:
            pod = self._runtime.pod(uid)
        except Exception as e:  # noqa: BLE001 - as above
            self.cache.set(RuntimePod(uid), e, monotonic)
            self._not_inspected(uid, e)
            return
        if pod.sandboxes or pod.containers:
            self.cache.set(with_kept_ip(pod, self.cache), None, monotonic)
        else:
            self.cache.delete(uid)

    def _not_inspected(self, uid: str, error: Exception) -> None:
        log.warning("pod not inspected", extra={"uid": uid, "cause": type(error).__name__, "error": str(error)})
        self.reinspect(uid)
        self.request(uid)

    def request(self, uid: str) -> None:
        """A look at this pod as soon as may be. Where too many wait, or the gate is off, the next list sees it."""
        if self._semantics.pleg_on_demand_relist and len(self._requests) < MOST_REQUESTS:
            self._requests.append((uid, self._monotonic()))
            self._loop.wake()

    def reinspect(self, uid: str) -> None:
        """The next list, or look, inspects this pod and tells of it even if nothing has changed."""
        self._relist.reinspect(uid)

    def turn(self) -> float:
        """Lists if it is time, else looks at one pod that was asked for."""
        monotonic = self._monotonic()
        self._look_at_stream(monotonic)
        if monotonic >= self._next_relist:
            last = self._relist.listed_at
            listed = self._relist.relist(monotonic)
            ended = self._monotonic()
            self._clocked.listed(last, monotonic, ended)
            self._tell(listed, whole=True)
            self._next_relist = ended + listed.pause_s(self._relist.pace)
            return 0.0
        if self._requests:
            uid, asked_at = self._requests.popleft()
            listed_at = self._relist.listed_at
            if listed_at is None or asked_at > listed_at:
                looked = self._relist.relist_pod(uid, monotonic)
                self._clocked.looked(monotonic, self._monotonic())
                self._tell(looked, whole=False)
            return 0.0
        pause_s = self._next_relist - monotonic
        return min(pause_s, LOOK_S) if self._stream.in_use else pause_s

    def _look_at_stream(self, monotonic: float) -> None:
        """As long as no events come everything is listed, and in the end lists are all that is believed."""
        if self._events_come is None or not self._stream.in_use or monotonic < self._next_look:
            return
        self._next_look = monotonic + LOOK_S
        if self._events_come(monotonic):
            return
        self._stream.failed()
        self._next_relist = monotonic
        if not self._stream.in_use:
            self._relist.pace = GENERIC
            log.warning("no events from the runtime: lists its pods every second from now on")

    def _tell(self, listed: Listed, *, whole: bool) -> None:
        """A line when something begins to fail, none while it does."""
        failed = dict(listed.failed) if listed.error is None else {"": listed.error}
        for uid, error in failed.items():
            if uid not in self._failing:
                what = "pod not inspected" if uid else "pods not listed"
                log.warning(what, extra={"uid": uid, "cause": type(error).__name__, "error": str(error)})
        if whole and "" in self._failing and "" not in failed:
            log.info("pods listed again")
        self._failing = (
            (set(failed) if "" not in failed else self._failing | {""}) if whole else self._failing | {*failed}
        )
