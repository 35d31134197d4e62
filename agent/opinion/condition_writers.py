"""Who writes the conditions: one publisher for each health pod that asks the agent on the node to speak for it.

A pod that is new under an old name has another uid, so it gets a publisher of its own, with a token of its own; that of
the old one ends.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from agent.report.condition import Condition, ConditionPublisher
from agent.report.heartbeat import Writer
from agent.wire.model import Pod
from component.text import one_line
from kube.errors import CredentialsInvalid

log = logging.getLogger(__name__)


class ConditionWriter(NamedTuple):
    """A publisher, what writes in the name of the same pod, and what closes the connections of both."""

    publisher: ConditionPublisher
    writer: Writer
    close: Callable[[], None]


class ConditionWriters:
    """A Service. Used by one thread, but for its counters. `make` raises CredentialsInvalid: the pod is tried again
    when something is said of it next, and the others hear what is said of them. `namespaces`: of health pods, in the
    order in which they are to write what any of them may."""

    name = "speakers"

    def __init__(self, make: Callable[[Pod], ConditionWriter], namespaces: Sequence[str] = ()) -> None:
        self._make = make
        self.follow(namespaces)
        self._speakers: dict[str, ConditionWriter] = {}
        self._troubled: frozenset[str] = frozenset()  # pods for which nobody can speak, which was told
        self._stopped = False
        self._ended_writes = self._ended_errors = 0

    def follow(self, namespaces: Sequence[str]) -> None:
        """From now on these, in this order. From any thread."""
        self._rank = {namespace: index for index, namespace in reversed([*enumerate(namespaces)])}

    def say(self, pod: Pod, condition: Condition) -> None:
        """Makes this the pod's condition. Never waits for the network."""
        if self._stopped:
            return
        speaker = self._speakers.get(pod.uid) or self._started(pod)
        if speaker is not None:
            speaker.publisher.publish(condition)

    def _started(self, pod: Pod) -> ConditionWriter | None:
        extra = {"pod": f"{pod.namespace}/{pod.name}", "uid": pod.uid}
        speaker = None
        try:
            speaker = self._make(pod)
            speaker.publisher.start()
        except (CredentialsInvalid, RuntimeError) as e:  # the latter: no thread is left
            if speaker is not None:
                _end(speaker)
            if pod.uid not in self._troubled:
                error = one_line(str(e))
                log.warning("nobody can speak for a health pod yet, will retry", extra={**extra, "error": error})
            self._troubled |= {pod.uid}
            return None
        self._speakers = {**self._speakers, pod.uid: speaker}
        self._troubled -= {pod.uid}
        log.info("speaks for a health pod", extra=extra)
        return speaker

    def keep(self, uids: Collection[str]) -> None:
        """Ends those of all other pods."""
        self._troubled &= set(uids)
        for uid in self._speakers.keys() - set(uids):
            ended = self._speakers[uid]
            self._speakers = {other: one for other, one in self._speakers.items() if other != uid}
            self._ended_writes += ended.publisher.writes
            self._ended_errors += ended.publisher.errors
            _end(ended)

    def writer(self) -> Writer | None:
        """In whose name a heartbeat is written: where it lies is where it is looked for, so that shall not depend on
        which pod was there first."""
        writers = [one.writer for one in self._speakers.values()]
        return min(writers, key=lambda one: self._rank.get(one.namespace, len(self._rank)), default=None)

    @property
    def writes(self) -> int:
        return self._ended_writes + sum(one.publisher.writes for one in self._speakers.values())

    @property
    def errors(self) -> int:
        return self._ended_errors + sum(one.publisher.errors for one in self._speakers.values())

    def start(self) -> None:
        """They are made when there is something to say."""

    def stop(self) -> None:
        self._stopped = True
        self.keep(())

    def healthy(self, monotonic: float) -> bool:
        return all(one.publisher.healthy(monotonic) for one in self._speakers.values())


def _end(speaker: ConditionWriter) -> None:
    speaker.close()  # first: it unblocks a write that is under way
    speaker.publisher.stop()
