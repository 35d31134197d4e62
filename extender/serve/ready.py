"""Whose bytes are looked at in a turn, where more have some than a turn looks at. Pure.

Each in the order in which they came to be ready, but for a few that go first. Those take half of a turn at most: nobody
is put off for more than twice as long, whatever they send.
"""

from collections.abc import Callable, Iterable


class Ready:
    """By descriptors, as epoll names them. One that is given to another connection meanwhile keeps its place."""

    def __init__(self) -> None:
        self._left: list[int] = []  # who were ready and not looked at

    def chosen(
        self, events: Iterable[tuple[int, int]], goes_first: Callable[[int], bool], most: int
    ) -> list[tuple[int, int]]:
        """events: of all that are ready, with what epoll says of them."""
        given = dict(events)
        there = {fd: given[fd] for fd in self._left if fd in given} | given
        chosen = dict.fromkeys([fd for fd in there if goes_first(fd)][: most // 2])
        for fd in there:
            if len(chosen) == most:
                break
            chosen[fd] = None
        self._left = [fd for fd in there if fd not in chosen]
        return [(fd, there[fd]) for fd in chosen]

    def left(self, fds: Iterable[int]) -> None:
        """Of those chosen last these were not looked at after all."""
        self._left = list(dict.fromkeys([*fds, *self._left]))
