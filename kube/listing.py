"""Lists and watches one kind of object at one path: pages, watches, decoding; and the interface of a store."""

import operator
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from kube import errors
from kube.client import Client, Dated
from kube.objects import UNREADABLE
from kube.stream import WatchStream

# Of a page. Twenty objects of etcd's limit, 1.5 MiB, fit in; of the usual 20 KiB all 500 do.
PAGE_LIMIT_BYTES = 32 * 2**20
SMALLER = 5  # the size of smaller pages is divided by this


class HasVersion(Protocol):
    @property
    def resource_version(self) -> str: ...


class HasMetadata(Protocol):
    @property
    def metadata(self) -> HasVersion: ...


T = TypeVar("T", bound=HasMetadata)
T_co = TypeVar("T_co", bound=HasMetadata, covariant=True)
C = TypeVar("C", contravariant=True)


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


I = TypeVar("I")  # noqa: E741 - the type of an item


class _List(msgspec.Struct, Generic[I]):
    kind: str
    metadata: _ListMeta
    items: list[I] | None = None


class _Event(msgspec.Struct, Generic[I]):
    object: I


class Event(Protocol[T_co]):
    """A line of a watch. type: as the server spells it."""

    @property
    def type(self) -> str: ...
    @property
    def object(self) -> T_co: ...


def _event_type(item_type: type) -> Any:  # noqa: ANN401 - a Struct that exists at run time only
    """Type and object in one Struct with the object's kind: a line is decoded once."""
    with_kind = msgspec.defstruct(item_type.__name__, [("kind", str, "")], bases=(item_type,))
    return msgspec.defstruct("Event", [("type", str), ("object", with_kind)])


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page. resource_version: of the whole list. more: token of the next page, "" at the end. skipped: items that
    could not be decoded. kind: of the items. date: as of client.Dated."""

    items: list[T]
    resource_version: str
    more: str
    skipped: int
    kind: str
    date: float | None = None


class ListerWatcher(Generic[T]):
    """A list and its watch. item_type: a msgspec Struct with metadata (kube.objects); it names the decoded fields.

    It has its own connections (`Client.branch`), and retries nothing: the reflector decides about the pace.
    """

    def __init__(
        self, client: Client, path: str, item_type: type[T], *, label_selector: str = "", field_selector: str = ""
    ) -> None:
        self.path = path
        self._client = client.branch()
        self._most = sys.maxsize  # items a page
        self._item: msgspec.json.Decoder[T] = msgspec.json.Decoder(item_type)
        # Indexed through `operator`, because the item type is a value here and no annotation.
        self._list: msgspec.json.Decoder[Any] = msgspec.json.Decoder(operator.getitem(_List, item_type))  # type: ignore[call-overload]
        self._event: msgspec.json.Decoder[Any] = msgspec.json.Decoder(operator.getitem(_Event, item_type))  # type: ignore[call-overload]
        self._line: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_event_type(item_type))
        self._raw_list = msgspec.json.Decoder(_List[msgspec.Raw])
        self._selectors = {}
        if label_selector:
            self._selectors["labelSelector"] = label_selector
        if field_selector:
            self._selectors["fieldSelector"] = field_selector

    def page(self, *, limit: int | None, more: str = "") -> Page[T]:
        """Returns one page of a quorum list; limit None for all in one, unless pages had to become smaller. Raises
        KubeError, CredentialsInvalid."""
        query = dict(self._selectors)
        if more:
            query["continue"] = more
        whole = limit is None and self._most == sys.maxsize
        answer = self._client.get_dated(self.path, query=query) if whole else self._answer(query, limit or self._most)
        page = self._decode_page(answer.body)
        if page.more and len(answer.body) * SMALLER <= PAGE_LIMIT_BYTES:
            self._most = min(self._most * SMALLER, sys.maxsize)
        if more and page.more == more:  # a server that ignores the token: the list would never end
            raise errors.MalformedReply(path=self.path, reason="EndlessList", message="a page goes on with itself")
        return replace(page, date=answer.date)

    def _answer(self, query: Mapping[str, str], limit: int) -> Dated:
        """Requests a page; a page that is too large is requested again in smaller ones, and so are those after it."""
        while True:
            limit = min(limit, self._most)
            query = {**query, "limit": str(limit)}
            try:
                return self._client.get_dated(self.path, query=query, limit_bytes=PAGE_LIMIT_BYTES)
            except errors.TooLarge:
                self._most = max(limit // SMALLER, 1)
                if limit == 1:
                    raise

    def watch(self, resource_version: str, *, timeout_s: int, silence_limit_s: float) -> WatchStream:
        """Opens a watch. timeout_s: the server ends the stream after it. Raises KubeError, CredentialsInvalid."""
        query = {
            **self._selectors,
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(timeout_s),
        }
        return self._client.watch(self.path, query=query, silence_limit_s=silence_limit_s)

    def decode_line(self, line: bytes, kind: str) -> Event[T] | None:
        """Returns None for a line that needs a closer check: an error, a bookmark, or no object of this kind."""
        try:
            event = self._line.decode(line)
        except UNREADABLE:
            return None
        return event if event.object.kind == kind else None

    def decode_event(self, line: bytes) -> T:
        """Returns the object of a watch line. Raises one of UNREADABLE."""
        item: T = self._event.decode(line).object
        return item

    def close(self) -> None:
        """Unblocks lists and watches; final. May be called twice."""
        self._client.close()

    def _decode_page(self, body: bytes) -> Page[T]:
        skipped = 0
        try:
            answer = self._list.decode(body)
            items: list[T] = answer.items or []
        except (msgspec.ValidationError, UnicodeDecodeError):
            # Some item has a wrong type. Decoding them one by one shows which one.
            answer = self._decode_raw(body)
            items = []
            for raw in answer.items or []:
                try:
                    items.append(self._item.decode(raw))
                except UNREADABLE:
                    skipped += 1
        except UNREADABLE as e:
            raise errors.MalformedReply(path=self.path, message=f"not a list: {e}") from e
        if not answer.kind.endswith("List") or not answer.metadata.resource_version:
            message = f"expected a list with a resourceVersion, got kind {answer.kind!r}"
            raise errors.MalformedReply(path=self.path, message=message)
        return Page(
            items=items,
            resource_version=answer.metadata.resource_version,
            more=answer.metadata.continue_,
            skipped=skipped,
            kind=answer.kind.removesuffix("List"),
        )

    def _decode_raw(self, body: bytes) -> Any:  # noqa: ANN401 - _List[Raw], which msgspec builds at run time
        try:
            return self._raw_list.decode(body)
        except UNREADABLE as e:
            raise errors.MalformedReply(path=self.path, message=f"not a list: {e}") from e


class Store(Protocol[C]):
    """The store that a reflector fills. An exception is logged and counted; it stops neither the stream nor the
    thread."""

    def replace(self, items: Sequence[C]) -> None:
        """Replaces everything atomically: a missing item was deleted, in an unknown last state."""
        ...

    def upsert(self, item: C) -> None: ...

    def remove(self, item: C) -> None:
        """item: its last state. It may be unknown here."""
        ...
