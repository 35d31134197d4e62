"""Cuts a history down to the smallest one that still differs. Pure: whoever calls says what differs."""

from collections.abc import Callable, Iterator
from typing import Any

from tools.differential.target import History

Differs = Callable[[list[History]], "list[bool]"]
"""Which of these histories differ. One that is no history at all does not."""

AT_ONCE = 64
ROUNDS = 200


def shrunk(
    history: History, differs: Differs, *, at_once: int = AT_ONCE, enough: Callable[[], bool] = lambda: False
) -> History:
    """The smallest found by leaving out parts and simplifying values, one at a time, big parts first. `at_once`: how
    many are asked for together. `enough`: asked before that, whether the smallest so far will do."""
    for _ in range(ROUNDS):
        smaller = _smaller(history, differs, at_once, enough)
        if smaller is None:
            return history
        history = smaller
    return history


def _smaller(history: History, differs: Differs, at_once: int, enough: Callable[[], bool]) -> History | None:
    waiting: list[History] = []
    for candidate in candidates(history):
        if enough():
            return None
        waiting.append(candidate)
        if len(waiting) == at_once:
            if (found := _first(waiting, differs)) is not None:
                return found
            waiting = []
    return _first(waiting, differs)


def _first(histories: list[History], differs: Differs) -> History | None:
    if not histories:
        return None
    return next((h for h, differ in zip(histories, differs(histories), strict=True) if differ), None)


def candidates(value: Any) -> Iterator[Any]:
    """Smaller values, the smallest first: halves and single items of lists, keys, then parts of parts."""
    match value:
        case list():
            yield from _shorter(value)
            for index, item in enumerate(value):
                for smaller in candidates(item):
                    yield [*value[:index], smaller, *value[index + 1 :]]
        case dict():
            for key in value:
                yield {k: v for k, v in value.items() if k != key}
            for key, item in value.items():
                for smaller in candidates(item):
                    yield {**value, key: smaller}
        case bool():
            if value:
                yield False
        case int() | float():
            yield from (n for n in (0, 1, int(value)) if n != value and abs(n) <= abs(value) and type(n) is not bool)
        case str():
            yield from _shorter_text(value)


def _shorter(items: list[Any]) -> Iterator[list[Any]]:
    size = len(items) // 2
    while size > 0:
        for start in range(0, len(items), size):
            yield [*items[:start], *items[start + size :]]
        size //= 2
    if len(items) == 1:
        yield []


def _shorter_text(text: str) -> Iterator[str]:
    if len(text) <= 12:  # names and words stay as they are: half a word is another word
        return
    for size in (len(text) // 2, len(text) // 4, 1):
        for start in range(0, len(text), max(1, size)):
            yield text[:start] + text[start + size :]
