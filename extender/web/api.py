"""GET /api/v1/...: nodes, gates, pods and history, for `readygate` and other tools; docs/openapi.yaml.

An answer has a weak ETag of everything in it except ages. With If-None-Match it is 304 until something happens, and the
client adds the elapsed time to the ages.
"""

import hashlib
import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from itertools import islice

import msgspec
from flask import Blueprint, Response, current_app, request

from component.command import product_version
from extender.policy.gates import gates_of
from extender.verbs.counts import Counts
from extender.web import decisions_view, history_view, parameters
from extender.web.parameters import BadRequestError
from extender.web.schema import (
    GatesTold,
    HistoryTold,
    ImpactTold,
    NodeTold,
    NodeVerdicts,
    PodTold,
    Problem,
    SchedulerTold,
)
from extender.web.view import View
from extender.why.history import History
from kube.media_types import JSON
from kube.times import format_micro_time

bp = Blueprint("api", __name__, url_prefix="/api/v1")

EVENTS_OF_A_PAGE = 100
NODES_OF_A_POD = 500
NODES_OF_A_PIECE = 100  # made at once, of all nodes
# For how long all nodes are shown unchanged, unless something was decided: so many times the time to make them.
SHOWN_FOR, SHOWN_MIN_S = 100, 1.0


class UnknownError(Exception):
    """The object is unknown. One line with cause and remedy; holds nothing of the request."""


class Api:
    """The state behind the routes. wall: as monotonic of the view, for displayed times. rest: called between the pieces
    of a long answer; may wait."""

    def __init__(
        self, view: View, *, wall: Callable[[], float] = time.time, rest: Callable[[], None] = lambda: None
    ) -> None:
        self.view = view
        self.wall = wall
        self._rest = rest
        self._begun = os.urandom(8)  # distinguishes the ETags of this process
        self._lock = threading.Lock()  # for memory work only
        self._numbers: dict[str, tuple[object, int]] = {}
        # Only one thread at a time does what takes megabytes: a page of nodes, the answer to a large body.
        self.making = threading.Lock()
        self._nodes: tuple[object, ...] = ()
        self._nodes_pieces: list[bytes] = []
        self._nodes_until = -math.inf

    def head(self, memory: History) -> dict[str, object]:
        """Returns the fields of a Head."""
        view = self.view
        monotonic, status = view.monotonic(), view.status()
        ages_s = {} if status is None else status.ages_s(monotonic)
        last_word_s = max(
            (ages_s[name] for name in (status.required if status else ()) if name in ages_s), default=None
        )
        return {
            "not_answering": view.why_not(),
            "release": product_version(),
            "at": format_micro_time(self.wall()),
            "last_word_seconds": None if last_word_s is None or last_word_s > 1e9 else round(last_word_s, 3),
            "since_start_seconds": None if memory.since is None else decisions_view.ago(memory.since, monotonic),
            "dropped_attempts": memory.dropped.attempts,
        }

    def number(self, what: str, of: object) -> int:
        """Returns a number that changes when `of` is another object than last time."""
        with self._lock:
            last, number = self._numbers.get(what, (None, 0))
            if of is not last:
                number += 1
                self._numbers[what] = of, number
            return number

    def tag(self, *made_of: object) -> str:
        """Returns an ETag without its quotes."""
        data = msgspec.msgpack.encode((self._begun, self.view.why_not(), made_of))
        return hashlib.blake2b(data, digest_size=12).hexdigest()

    def all_nodes(self) -> list[bytes]:
        """Returns nodes("", None) in JSON, in pieces that all clients share. Making them takes as long as hundreds of
        other requests, so at most a hundredth of a processor is spent on it."""
        view = self.view
        with self.making:
            of = (view.board.snapshot, view.why_not())
            if self._nodes != of or view.monotonic() >= self._nodes_until:
                began_s = time.thread_time()
                self._nodes, self._nodes_pieces = (), []  # the old ones are released before new ones are made
                self._nodes_pieces, self._nodes = self._all_nodes(), of
                took_s = time.thread_time() - began_s
                self._nodes_until = view.monotonic() + max(SHOWN_MIN_S, SHOWN_FOR * took_s)
            return self._nodes_pieces

    def _all_nodes(self) -> list[bytes]:
        """Makes the pieces, with pauses between them."""
        view = self.view
        snapshot, beats, monotonic = view.board.snapshot, view.beats(), view.monotonic()
        with view.journal.reading() as memory:
            head = msgspec.json.encode(NodeVerdicts(**self.head(memory), nodes=[]))  # type: ignore[arg-type]
        merged = decisions_view.merged(snapshot)
        names = sorted(merged)
        pieces = [head.removesuffix(b"]}")]
        for at in range(0, len(names), NODES_OF_A_PIECE):
            if at:
                self._rest()
            told = [
                decisions_view.node_told(snapshot, name, merged[name], beats, monotonic)
                for name in names[at : at + NODES_OF_A_PIECE]
            ]
            pieces.append((b"," if at else b"") + msgspec.json.encode(told)[1:-1])
        return [*pieces, b"]}"]

    def nodes(self, after: str, limit: int | None) -> NodeVerdicts:
        view = self.view
        snapshot, beats, monotonic = view.board.snapshot, view.beats(), view.monotonic()
        merged = decisions_view.merged(snapshot)
        names, more = decisions_view.page(sorted(merged), after, limit)
        nodes = [decisions_view.node_told(snapshot, name, merged[name], beats, monotonic) for name in names]
        with view.journal.reading() as memory:
            return NodeVerdicts(**self.head(memory), nodes=nodes, continue_=more)  # type: ignore[arg-type]

    def node(self, name: str) -> NodeTold:
        """Raises UnknownError."""
        view = self.view
        snapshot, monotonic, wall = view.board.snapshot, view.monotonic(), self.wall()
        decision = decisions_view.merged_of(snapshot, name)
        if decision is None:
            raise UnknownError("no node of that name is known here; GET /api/v1/nodes lists all")
        with view.journal.reading() as memory:
            events = islice(history_view.events(memory, lambda one: one.node == name), history_view.TRANSITIONS_MAX)
            return NodeTold(
                **self.head(memory),  # type: ignore[arg-type]
                node=decisions_view.node_told(snapshot, name, decision, view.beats(), monotonic),
                transitions=tuple(history_view.change_told(event, monotonic, wall) for event in events),
                refused_pods=tuple(history_view.refused_pods(memory, name, monotonic)),
            )

    def gates(self) -> GatesTold:
        view = self.view
        snapshot, monotonic, wall = view.board.snapshot, view.monotonic(), self.wall()
        speaks_for = {gate.name: str(gate.pods_for) for gate in gates_of(view.settings)}
        status = view.status()
        issued, ends = (None, None) if status is None else (status.credentials_issued, status.credentials_expire)
        with view.journal.reading() as memory:
            last = history_view.last_changes(memory)
            told = tuple(
                decisions_view.gate_told(
                    state,
                    memory.tallies.get(name),
                    speaks_for.get(name, decisions_view.EVERY_POD),
                    history_view.change_told(last[name], monotonic, wall) if name in last else None,
                    monotonic,
                )
                for name, state in snapshot.gates.items()
            )
            return GatesTold(
                **self.head(memory),  # type: ignore[arg-type]
                gates=told,
                cap=decisions_view.cluster_cap(snapshot),
                orders=tuple(decisions_view.orders_told(view.orders, wall)),
                faults=view.orders.faults,
                scheduler=self._scheduler(),
                credentials_left_seconds=None if ends is None else round(ends - wall),
                credentials_life_seconds=None if ends is None or issued is None else round(ends - issued),
            )

    def _scheduler(self) -> SchedulerTold:
        view = self.view
        status = view.status()
        counts = Counts() if status is None else status.counts
        lately = view.calls.over(counts, view.monotonic())
        return SchedulerTold(
            mode=view.settings.mode or "",
            calls=counts.calls,
            unanswered=counts.unanswered,
            per_second=round(lately.per_s, 3),
            p99_seconds=None if lately.p99_s is None or math.isinf(lately.p99_s) else lately.p99_s,
            last_call_seconds=None if lately.last_s is None else round(lately.last_s, 1),
        )

    def pod(self, memory: History, namespace: str, name: str, after: str, limit: int) -> PodTold:
        head = self.head(memory)
        record = memory.pods.get(f"{namespace}/{name}")
        if record is None:
            return PodTold(**head, namespace=namespace, name=name)  # type: ignore[arg-type]
        view = self.view
        monotonic = view.monotonic()
        last, more = history_view.attempt_told(memory, record, view.board.snapshot, monotonic, after=after, limit=limit)
        return PodTold(
            **head,  # type: ignore[arg-type]
            namespace=namespace,
            name=name,
            uid=record.uid,
            attempts=record.answered,
            unanswered=record.unanswered,
            unanswered_why=record.unanswered_why,
            refused_times=record.refused_times,
            first_seconds=decisions_view.ago(record.first, monotonic),
            last=last,
            continue_=more,
        )

    def history(self, memory: History, query: Mapping[str, str], limit: int) -> HistoryTold:
        monotonic, wall = self.view.monotonic(), self.wall()
        wanted = {"node": parameters.node(query), "gate": parameters.gate(query), "kind": parameters.kind(query)}
        wanted = {field: text for field, text in wanted.items() if text}
        found = history_view.events(
            memory,
            lambda event: all(getattr(event, field) == text for field, text in wanted.items()),
            parameters.after_number(query),
        )
        events = list(islice(found, limit))
        more = events and next(found, None) is not None
        return HistoryTold(
            **self.head(memory),  # type: ignore[arg-type]
            events=tuple(history_view.change_told(event, monotonic, wall) for event in events),
            forgotten=memory.events[0].serial - 1 if memory.events else 0,
            continue_=str(events[-1].serial) if more else "",
        )


def api() -> Api:
    found: Api = current_app.extensions["readygate-api"]
    return found


@bp.get("/nodes", provide_automatic_options=False)
def nodes_view() -> Response:
    query = _query("limit", "continue")
    limit, after = parameters.limit(query, None), parameters.after_name(query)
    made = api()
    tag = made.tag("nodes", query, made.number("snapshot", made.view.board.snapshot))
    if limit is None and not after:
        return _answer(tag, made.all_nodes)

    def page() -> bytes:
        with made.making:
            return msgspec.json.encode(made.nodes(after, limit))

    return _answer(tag, page)


@bp.get("/nodes/<name>", provide_automatic_options=False)
def node_view(name: str) -> Response:
    _query()
    made = api()
    parameters.named(name, parameters.NAME, "node")
    tag = made.tag("node", name, made.number("snapshot", made.view.board.snapshot), made.view.journal.serial)
    return _answer(tag, lambda: msgspec.json.encode(made.node(name)))


@bp.get("/gates", provide_automatic_options=False)
def gates_view() -> Response:
    _query()
    made = api()
    view = made.view
    numbers = [made.number(*of) for of in (("snapshot", view.board.snapshot), ("orders", view.orders))]
    numbers += made.number("settings", view.settings), made.number("status", view.status())
    with view.journal.reading() as memory:
        tag = made.tag("gates", numbers, memory.since, memory.serial, list(memory.tallies.values()))
    return _answer(tag, lambda: msgspec.json.encode(made.gates()))


@bp.get("/pods/<namespace>/<name>", provide_automatic_options=False)
def pod_view(namespace: str, name: str) -> Response:
    query = _query("limit", "continue")
    limit, after = parameters.limit(query, NODES_OF_A_POD) or NODES_OF_A_POD, parameters.after_name(query)
    parameters.named(namespace, parameters.LABEL, "namespace")
    parameters.named(name, parameters.NAME, "pod")
    made = api()
    snapshot = made.number("snapshot", made.view.board.snapshot)
    with made.view.journal.reading() as memory:
        record = memory.pods.get(f"{namespace}/{name}")
        tag = made.tag("pod", namespace, name, query, snapshot, memory.since, memory.dropped, record)
        return _answer(tag, lambda: msgspec.json.encode(made.pod(memory, namespace, name, after, limit)))


@bp.get("/history", provide_automatic_options=False)
def changes_view() -> Response:
    query = _query("limit", "continue", "node", "gate", "kind")
    limit = parameters.limit(query, EVENTS_OF_A_PAGE) or EVENTS_OF_A_PAGE
    made = api()
    with made.view.journal.reading() as memory:
        first = memory.events[0].serial if memory.events else 0
        body = msgspec.json.encode(made.history(memory, query, limit))
        return _answer(made.tag("history", query, memory.since, first, memory.serial, memory.dropped), lambda: body)


@bp.get("/impact", provide_automatic_options=False)
def impact_view() -> Response:
    _query()
    made = api()
    view = made.view
    snapshot = view.board.snapshot
    with view.journal.reading() as memory:
        tallies = list(memory.tallies.values())
        tag = made.tag("impact", made.number("snapshot", snapshot), memory.since, tallies)
        told = tuple(history_view.impact_told(memory, snapshot, view.monotonic()))
        return _answer(tag, lambda: msgspec.json.encode(ImpactTold(**made.head(memory), gates=told)))  # type: ignore[arg-type]


def _query(*allowed: str) -> dict[str, str]:
    return parameters.query(dict(request.args.lists()), allowed)


def _answer(tag: str, make: Callable[[], bytes | list[bytes]]) -> Response:
    if request.if_none_match.contains_weak(tag):
        response = Response(status=304)
        del response.headers["Content-Type"]
    else:
        response = Response(make(), content_type=JSON)
    response.set_etag(tag, weak=True)
    response.headers["Cache-Control"] = "no-cache"
    return response


def problem(status: int, error: str, cause: str) -> Response:
    return Response(msgspec.json.encode(Problem(error, cause)), status, content_type=JSON)


@bp.errorhandler(BadRequestError)
def _bad_request(error: BadRequestError) -> Response:
    return problem(400, "BadRequest", str(error))


@bp.errorhandler(UnknownError)
def _unknown(error: UnknownError) -> Response:
    return problem(404, "NotFound", str(error))
