"""Many conversations over sockets at the same time, in one thread, until one deadline.

A conversation is a generator: it yields what it waits for next, a socket or the end of a pause, and returns what it
found out. So a check of several servers takes as long as the slowest of them, and a silent one keeps nobody waiting.
"""

import contextlib
import errno
import os
import selectors
import socket
import time
from collections.abc import Callable, Generator, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Wait:
    """Until `events` of the socket, or for `at_most_s` where that comes first: then the generator is sent False."""

    on: socket.socket
    events: int
    at_most_s: float | None = None


Talk = Generator[Wait, bool, R]
"""Is sent True where its socket is ready. At the deadline TimeoutError is thrown into it, and it shall return."""


def talk_all(
    talks: Mapping[K, Talk[R]], timeout_s: float, monotonic: Callable[[], float] = time.monotonic
) -> dict[K, R]:
    """What each returned, in the order given. All of them are closed when it comes back: by `timeout_s`, for talks that
    end at their TimeoutError. What a talk raises is raised here, and ends the others."""
    run = _Run(dict(talks), monotonic)
    try:
        run.until(monotonic() + timeout_s)
    finally:
        run.close()
    return {key: run.found[key] for key in talks}


class _Run(Generic[K, R]):
    def __init__(self, talks: "dict[K, Talk[R]]", monotonic: Callable[[], float]) -> None:
        self._talks = talks
        self._monotonic = monotonic
        self._selector = selectors.DefaultSelector()
        self._waits: dict[K, tuple[Wait, float]] = {}  # what each waits for, and when it no longer does
        self.found: dict[K, R] = {}

    def until(self, deadline: float) -> None:
        for key in self._talks:
            self._step(key, lambda talk: next(talk))
        while self._waits and (now := self._monotonic()) < deadline:
            ends = min(deadline, *(end for _, end in self._waits.values()))
            ready = {key.data for key, _ in self._selector.select(max(0.0, ends - now))}
            now = self._monotonic()
            for key, (_, end) in list(self._waits.items()):
                if key in ready:
                    self._step(key, lambda talk: talk.send(True))
                elif end <= now:
                    self._step(key, lambda talk: talk.send(False))
        for key in list(self._waits):
            self._step(key, lambda talk: talk.throw(TimeoutError("deadline exceeded")))
        if self._waits:
            raise RuntimeError("a talk went on after its deadline")

    def close(self) -> None:
        for talk in self._talks.values():
            talk.close()
        self._selector.close()

    def _step(self, key: K, resume: "Callable[[Talk[R]], Wait]") -> None:
        if (waited := self._waits.pop(key, None)) is not None:
            self._selector.unregister(waited[0].on)
        try:
            wait = resume(self._talks[key])
        except StopIteration as e:
            self.found[key] = e.value
            return
        self._selector.register(wait.on, wait.events, key)
        end = float("inf") if wait.at_most_s is None else self._monotonic() + wait.at_most_s
        self._waits[key] = wait, end


def connect(link: socket.socket, address: tuple[str, int]) -> Generator[Wait, bool, None]:
    """Of a socket that does not block. Raises OSError: at its first step where this machine itself refuses."""
    try:
        link.connect(address)
    except BlockingIOError:
        yield Wait(link, WRITE)
        if problem := link.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(problem, os.strerror(problem)) from None


def no_way(error: OSError) -> bool:
    """Of what connect() or send() refuse at once: this machine has no way there, by ENETUNREACH as a rule. Not so where
    a Service without endpoints is refused, as all nodes do: kube-proxy's rule by EPERM, Cilium in its place by
    EHOSTUNREACH (bpf/bpf_sock.c)."""
    return error.errno in (errno.ENETUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL, errno.EACCES)


def family_of(address: str) -> int:
    """Of an IP address."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def is_ours(address: str) -> bool:
    """Whether this machine would send to it from it. No packet leaves."""
    with contextlib.suppress(OSError), socket.socket(family_of(address), socket.SOCK_DGRAM) as link:
        link.connect((address, 9))
        family, (plain, _, _) = family_of(address), address.partition("%")
        return socket.inet_pton(family, link.getsockname()[0].partition("%")[0]) == socket.inet_pton(family, plain)
    return False
