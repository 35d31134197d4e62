"""readygate's own condition on each Node, as the watch of the Nodes shows it: of an earlier writer, or missing.

It is no evidence: decisions do not read it.
"""

import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from kube import contract


class Condition(Protocol):
    """The fields of a Node's condition that are read here."""

    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def last_transition_time(self) -> str | None: ...
    @property
    def last_heartbeat_time(self) -> str | None: ...


class Meta(Protocol):
    """Name and uid of a Node."""

    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...


class Status(Protocol):
    """The status of a Node."""

    @property
    def conditions(self) -> Sequence[Condition] | None: ...


class Node(Protocol):
    """The fields of a Node that are read here."""

    @property
    def metadata(self) -> Meta: ...
    @property
    def status(self) -> Status: ...


class ObservedCondition(NamedTuple):
    """The condition on the Node with this uid; status "" if there is none. changed, seen: RFC 3339, or ""."""

    uid: str
    status: str = ""
    reason: str = ""
    message: str = ""
    changed: str = ""
    seen: str = ""

    def says(self, other: "ObservedCondition") -> bool:
        """Returns whether both are equal, apart from times."""
        return self[:5] == other[:5]


def mark_of(node: Node) -> ObservedCondition:
    """Reads the condition of a Node."""
    for condition in node.status.conditions or ():
        if condition.type == contract.CONDITION_NODE_HEALTHY:
            return ObservedCondition(
                node.metadata.uid,
                condition.status,
                condition.reason,
                condition.message,
                condition.last_transition_time or "",
                condition.last_heartbeat_time or "",
            )
    return ObservedCondition(node.metadata.uid)


class ObservedConditions:
    """Thread-safe: filled by the reflector of Nodes, read by the writer. The lock is held for a few lines."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._marks: dict[str, ObservedCondition] = {}
        self._changed: dict[str, None] = {}

    def get(self, node: str) -> ObservedCondition | None:
        """Returns None if there is no such Node."""
        return self._marks.get(node)

    def names(self) -> list[str]:
        with self._lock:
            return list(self._marks)

    def take_changed(self) -> Iterable[str]:
        """Returns nodes that came, went or changed their text since the last call. Changes of times alone do
        not count."""
        with self._lock:
            changed, self._changed = self._changed, {}
        return changed

    def replace(self, nodes: Sequence[Node]) -> None:
        marks = {node.metadata.name: mark_of(node) for node in nodes}
        with self._lock:
            before, self._marks = self._marks, marks
            for name in {**before, **marks}:
                self._note(name, before.get(name), marks.get(name))

    def upsert(self, node: Node) -> None:
        name, mark = node.metadata.name, mark_of(node)
        with self._lock:
            before = self._marks.get(name)
            self._marks[name] = mark
            self._note(name, before, mark)

    def remove(self, node: Node) -> None:
        name = node.metadata.name
        with self._lock:
            self._note(name, self._marks.pop(name, None), None)

    def _note(self, name: str, before: ObservedCondition | None, mark: ObservedCondition | None) -> None:
        if before is None or mark is None or not mark.says(before):
            self._changed[name] = None
