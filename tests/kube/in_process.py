"""An API server without sockets, for thousands of steps a second: real lists and lines, decoded by the real code."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kube import errors
from kube.client import Dated
from tools.fakes import api_http, api_store, api_words
from tools.fakes.api_store import ApiStore, Change
from tools.kit.clock import Clock

NAMES = ("a", "b", "c", "d", "e")
REFUSALS = (403, 410, 429, 500, 503)
GARBAGE = (
    b"{",
    b"null",
    b"[]",
    b'{"type":"ADDED","object":{}}',
    b'{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"a","resourceVersion":"7"}}}',
    b'{"type":"ADDED","object":{"kind":"Table","metadata":{"resourceVersion":"99999"}}}',
    b'{"type":"MODIFIED","object":{"kind":"Pod","metadata":{"name":"a","resourceVersion":"99999"}}}',
)


class Finished(BaseException):
    """Nothing more will happen: ends the watch from within, past everything that catches exceptions."""


def node(name: str, *, poisoned: bool = False) -> dict:
    spec = {"spec": {"unschedulable": "yes"}} if poisoned else {}
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}, **spec}


@dataclass
class World:
    """Does one thing drawn by chance a step; what the reflector asks in between is answered from what is stored then.

    at_rest(): called when the reflector has taken over all there is. The clock goes on with each step.
    """

    chance: random.Random
    clock: Clock
    steps: int
    at_rest: Callable[["World"], None] = lambda _: None
    refused: set[str] = field(default_factory=set)  # names that the store refuses
    doubtful: bool = False  # something was left out that only a list can bring
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pending: list[Change] = []
        self.held = False
        self.word: object = None  # how the watch ends
        self.refusals: dict[bool, int] = {}  # of the next list, of the next watch
        self.store = ApiStore(on_change=self.pending.append)

    # What a ListerWatcher wants of a client

    def branch(self) -> "World":
        return self

    def close(self) -> None:
        return

    def get_dated(self, path: str, *, query: dict, **_: object) -> Dated:
        self._maybe_refuse(watch=False)
        items = self.store.select("nodes", "", lambda _: True)
        at = int(query["continue"]) if "continue" in query else 0
        limit = min(int(query.get("limit", 500)), 3)  # many small pages
        meta = {"resourceVersion": str(self.store.version)}
        if at and self.chance.random() < 0.1:
            raise errors.Gone(path=path)
        if "limit" in query and at + limit < len(items):
            meta["continue"] = str(at + limit)
            items = items[at : at + limit]
        else:
            items = items[at:]
        if any("spec" in item for item in items):
            self.doubtful = True
        return Dated(json.dumps({"kind": "NodeList", "metadata": meta, "items": items}).encode(), None)

    def watch(self, path: str, *, query: dict, silence_limit_s: float) -> "World":
        del silence_limit_s
        self._maybe_refuse(watch=True)
        version = int(query["resourceVersion"])
        if version < self.store.floor:
            raise errors.Gone(path=path)
        self.pending[:] = self.store.changes(version)
        self.word = None
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def batches(self, **_) -> Iterator[list[bytes]]:
        while True:
            lines = self._lines()
            if lines:
                yield lines
            if self.word is not None:
                yield from self._end(self.word)
                return
            if not self.pending and not self.held:
                self.at_rest(self)
            if not self.steps:
                raise Finished
            self.step()
            yield []

    # What happens

    def step(self) -> None:
        self.steps -= 1
        self.clock.time += self.chance.choice((0.0, 0.1, 5.0, 20.0))
        name = self.chance.choice(NAMES)
        verb = self.chance.choice(
            ("put",) * 8
            + ("delete",) * 4
            + ("poison", "refuse", "hold", "release", "bookmark", "end", "cut", "silence")
            + ("error", "compact", "next list", "next watch", "garbage")
        )
        self.done.append(f"{verb} {name}")
        if verb == "put":
            self._put(node(name))
        elif verb == "poison":
            self._put(node(name, poisoned=True))
        elif verb == "delete" and ("nodes", "", name) in self.store.objects:
            self.store.delete(("nodes", "", name))
        elif verb == "refuse":
            self.refused ^= {name}
        elif verb in ("hold", "release"):
            self.held = verb == "hold"
        elif verb == "compact":
            self.store.compact()
            self.word = "error" if self.pending else self.word
        elif verb in ("next list", "next watch"):
            self.refusals[verb == "next watch"] = self.chance.choice(REFUSALS)
        elif verb in ("bookmark", "end", "cut", "silence", "error", "garbage"):
            self.word = verb

    def heal(self) -> None:
        """Whatever was wrong is right from now on."""
        self.refused.clear()
        self.refusals.clear()
        self.held = False
        for value in self.store.select("nodes", "", lambda item: "spec" in item):
            self._put(node(value["metadata"]["name"]))

    def truth(self) -> dict[str, str]:
        return {
            item["metadata"]["name"]: item["metadata"]["resourceVersion"]
            for item in self.store.select("nodes", "", lambda _: True)
        }

    def _put(self, value: dict) -> None:
        value["metadata"]["labels"] = {"at": str(self.store.version)}  # or nothing would have changed
        key = ("nodes", "", value["metadata"]["name"])
        if key in self.store.objects:
            self.store.update(key, value, force=True)
        else:
            self.store.create("nodes", "", value)

    def _lines(self) -> list[bytes]:
        if self.held or not self.pending:
            return []
        count = self.chance.randint(1, len(self.pending))
        taken, self.pending[:] = self.pending[:count], self.pending[count:]
        told = [api_store.event_for(change, lambda _: True) for change in taken]
        if any("spec" in value for _, value in filter(None, told)):
            self.doubtful = True
        return [api_http.event(*event).rstrip() for event in told if event]

    def _end(self, word: object) -> Iterator[list[bytes]]:
        """A word that does not end the watch is said, and the watch goes on."""
        self.word = None
        if word == "silence":
            raise errors.DeadlineExceeded(path="/")
        if word == "error":
            code, reason = self.chance.choice(((410, "Expired"), (429, "TooManyRequests"), (500, "InternalError")))
            yield [api_http.event("ERROR", api_words.status(code, reason, "")).rstrip()]
        elif word == "bookmark" and not self.pending:
            yield [api_http.bookmark("nodes", self.store.version).rstrip()]
            yield from self.batches()
        elif word == "garbage":
            yield [self.chance.choice(GARBAGE)]
            yield from self.batches()

    def _maybe_refuse(self, *, watch: bool) -> None:
        status = self.refusals.pop(watch, None)
        if status is not None:
            raise errors.from_status(path="/", status=status)
