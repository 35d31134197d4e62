"""Pure: a large mapping of names that changes a little at a time, without a full copy each time."""

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

V = TypeVar("V")
CHANGES_MAX = 128  # beyond it a new base is made; a copy of 5,000 entries costs as much as deciding a few nodes


class LayeredMap(Mapping[str, V], Generic[V]):
    """An immutable mapping. base: most of it, shared with earlier ones. changes: entries that differ from it; None =
    removed.

    Neither is copied: nobody may change them afterwards.
    """

    __slots__ = ("_base", "_changes")

    def __init__(self, base: Mapping[str, V] | None = None, changes: Mapping[str, V | None] | None = None) -> None:
        self._base: Mapping[str, V] = base or {}
        self._changes: Mapping[str, V | None] = changes or {}

    def with_changes(self, changes: Mapping[str, V | None]) -> "LayeredMap[V]":
        """Returns the mapping after these changes; None removes a name."""
        if not changes:
            return self
        changes = {**self._changes, **changes}
        if len(changes) <= CHANGES_MAX:
            return LayeredMap(self._base, changes)
        joined = {**self._base, **changes}
        return LayeredMap({name: value for name, value in joined.items() if value is not None})

    def differing(self, before: Mapping[str, V]) -> Iterable[str]:
        """Returns the names that may differ from the earlier mapping: few if both share a base."""
        if isinstance(before, LayeredMap) and before._base is self._base:  # noqa: SLF001 - one of its own kind
            return {**before._changes, **self._changes}  # noqa: SLF001
        return {**dict.fromkeys(before), **dict.fromkeys(self)}

    def __getitem__(self, name: str) -> V:
        value = self._changes[name] if name in self._changes else self._base[name]
        if value is None:
            raise KeyError(name)
        return value

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - as Mapping has it
        """As dict.get(); without the exception that Mapping's own method costs for a missing name."""
        value = self._changes[name] if name in self._changes else self._base.get(name)
        return default if value is None else value

    def __contains__(self, name: object) -> bool:
        return self._changes[name] is not None if name in self._changes else name in self._base  # type: ignore[index]

    def __len__(self) -> int:
        gains = sum((value is not None) - (name in self._base) for name, value in self._changes.items())
        return len(self._base) + gains

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._pairs())

    def items(self) -> ItemsView[str, V]:
        return _Items(self, self._pairs) if self._changes else self._base.items()

    def _pairs(self) -> Iterator[tuple[str, V]]:
        changes = self._changes
        for name, value in self._base.items():
            if name not in changes:
                yield name, value
            elif (changed := changes[name]) is not None:
                yield name, changed
        for name, added in changes.items():
            if added is not None and name not in self._base:
                yield name, added


class _Items(ItemsView[str, V]):
    def __init__(self, of: Mapping[str, V], pairs: Callable[[], Iterator[tuple[str, V]]]) -> None:
        super().__init__(of)
        self._pairs = pairs

    def __iter__(self) -> Iterator[tuple[str, V]]:
        return self._pairs()
