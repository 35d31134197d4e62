"""Pure: a bounded dictionary in which no namespace can displace the entries of others."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Shares(Generic[K, V]):
    """Entries by key, each of one namespace, the oldest first. Not thread-safe. All steps take constant time.

    limit: how many entries there may be. Beyond it, the namespace with the most entries loses its oldest.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: dict[K, tuple[str, V]] = {}
        self._keys = defaultdict[str, dict[K, None]](dict)  # by namespace
        self._by_size = defaultdict[int, dict[str, None]](dict)  # namespaces by their number of entries
        self._largest = 0  # number of entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def items(self) -> list[tuple[K, V]]:
        return [(key, value) for key, (_, value) in self._entries.items()]

    def get(self, key: K) -> V | None:
        found = self._entries.get(key)
        return None if found is None else found[1]

    def pop(self, key: K) -> V | None:
        found = self._entries.pop(key, None)
        if found is None:
            return None
        namespace, value = found
        del self._keys[namespace][key]
        self._resized(namespace, len(self._keys[namespace]) + 1)
        return value

    def surplus(self, key: K) -> K | None:
        """The entry that must go before this key is put, None if there is room."""
        if key in self._entries or len(self._entries) < self._limit:
            return None
        return next(iter(self._keys[next(iter(self._by_size[self._largest]))]))

    def put(self, namespace: str, key: K, value: V) -> None:
        """Puts the entry last, and makes room for it."""
        self.pop(key)
        surplus = self.surplus(key)
        if surplus is not None:
            self.pop(surplus)
        self._entries[key] = (namespace, value)
        self._keys[namespace][key] = None
        self._resized(namespace, len(self._keys[namespace]) - 1)

    def _resized(self, namespace: str, before: int) -> None:
        """before: how many entries the namespace had; one less or one more than now."""
        size = len(self._keys[namespace])
        self._by_size[before].pop(namespace, None)
        if not self._by_size[before]:
            del self._by_size[before]
        if size:
            self._by_size[size][namespace] = None
        else:
            del self._keys[namespace]
        if size > self._largest or (before == self._largest and before not in self._by_size):
            self._largest = size
