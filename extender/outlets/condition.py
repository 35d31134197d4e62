"""The thread that writes the condition readygate.dev/NodeHealthy of the Nodes.

Once a second it compares the newest snapshot with what the Nodes say: a condition of an earlier writer is not written
again while it is true and fresh. Guaranteed: (1) only the leader writes, and checks that it leads before each write;
(2) it writes this one condition of the Node with the observed uid, and nothing else; (3) the writes a second are
bounded, and changes come first; (4) nothing is written while verdicts must not be given because data is stale.
"""

import logging
import math
import random as random_module
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from component.loop import LOG_AGAIN_S, Loop
from extender.outlets import wire
from extender.outlets.election import WRITE_S
from extender.outlets.node_condition_text import Standing, standing_of
from extender.outlets.observed_conditions import ObservedCondition
from extender.outlets.write_order import Due, WriteOrder, due_of
from extender.policy.decision import Decision, GateState
from extender.policy.evidence import TOLD_HEALTHY
from kube import paths
from kube.contract import STATUS_TRUE
from kube.errors import Conflict, CredentialsInvalid, Forbidden, Invalid, KubeError, NotFound
from kube.media_types import STRATEGIC_MERGE_PATCH
from kube.objects import UNREADABLE
from kube.times import format_time

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
IDLE_S = 1.0  # while another replica leads
PIECE = 50  # nodes compared at a time: a waiting filter call gets the interpreter in between
YIELD_S = 0.001
SPREAD = 0.2  # a refresh comes earlier by up to so much of its time, so that batches spread
SETTLES_S = 10.0  # a write counts for so long, whatever the watch shows: the watch may be behind
REMEDY = (
    "allow the extender's user the verb patch on nodes/status, as the playbooks' ClusterRole does, or switch off "
    "outlets.nodeCondition"
)


class Client(Protocol):
    """The part of kube.client.Client that is used here; with its own connections, which end with this object."""

    def patch(self, path: str, body: bytes, *, content_type: str, deadline_s: float | None = None) -> bytes: ...
    def close(self) -> None: ...


class Seen(Protocol):
    """The part of observed_conditions.ObservedConditions that is used here."""

    def get(self, node: str) -> ObservedCondition | None: ...
    def names(self) -> list[str]: ...
    def take_changed(self) -> Iterable[str]: ...


# Called with (node, uid, its text now) when that has another status than before; must not block.
OnChange = Callable[[str, str, Standing], None]


class _Written(NamedTuple):
    mark: ObservedCondition
    until: float


@dataclass(slots=True)
class _Memory:
    """The state of one term as leader; before it only the conditions of the Nodes are known.

    known: what was compared last, by gate. written: by node. stood_at: status and reason, by node.
    """

    turns: WriteOrder
    look_at: float = -math.inf
    known: dict[str, tuple[GateState, dict[str, Decision]]] = field(default_factory=dict)
    written: dict[str, _Written] = field(default_factory=dict)
    stood_at: dict[str, tuple[str, str]] = field(default_factory=dict)


class Conditions:
    """A Service with one thread.

    gates(): of the newest snapshot, None while it must not be used. leads(): whether this replica writes. refresh_s:
    infinite for on change only. write: False if nodes are only compared, for on_change.
    """

    name = "node-condition"

    def __init__(
        self,
        client: Client,
        seen: Seen,
        *,
        gates: Callable[[], Mapping[str, GateState] | None],
        leads: Callable[[], bool],
        refresh_s: float,
        per_second: float,
        write: bool = True,
        on_change: OnChange = lambda *_: None,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        random: Callable[[], float] = random_module.random,
        rest: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._rest = rest
        self._seen = seen
        self._gates = gates
        self._leads = leads
        self._refresh_s = refresh_s
        self._per_second = per_second
        self._write = write
        self._on_change = on_change
        self._monotonic = monotonic
        self._wall = wall
        self._random = random
        self._counts = {"written": 0}
        self._logged_at: dict[str, float] = {}
        # Healthy as long as its thread lives: a restart would not make the API server answer.
        self._loop = Loop(
            "node-condition", self.turn, stuck_after_s=math.inf, unblock=client.close, monotonic=monotonic
        )
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy
        self._memory: _Memory | None = None

    @property
    def counters(self) -> Mapping[str, int]:
        """Writes by result: written, gone, and the cause of each failure."""
        return dict(self._counts)

    @property
    def waiting(self) -> int:
        """The number of nodes whose condition is due."""
        memory = self._memory
        return 0 if memory is None else memory.turns.waiting

    def turn(self) -> float:
        """Compares some nodes, and writes one at most. Returns the seconds until the next turn."""
        gates = self._gates() if self._leads() else None
        if gates is None:
            self._memory = None
            return IDLE_S
        monotonic = self._monotonic()
        memory = self._memory
        if memory is None:
            memory = self._memory = _Memory(WriteOrder(per_second=self._per_second, random=self._random))
            memory.turns.look(self._seen.names())
        if monotonic >= memory.look_at:
            self._look(memory, gates)
            memory.look_at = monotonic + LOOK_EVERY_S
        for node in memory.turns.to_look_at(PIECE):
            self._compare(memory, node, gates)
        due = memory.turns.take(monotonic)
        if due is not None:
            self._write_one(memory, *due, gates)
        if memory.turns.looks:
            return YIELD_S
        return max(0.0, min(memory.turns.next_at(self._monotonic()), memory.look_at) - self._monotonic())

    def _look(self, memory: _Memory, gates: Mapping[str, GateState]) -> None:
        """Notes what has changed since the last call."""
        turns = memory.turns
        turns.look(self._seen.take_changed())
        for name in memory.known.keys() - gates.keys():
            turns.look(memory.known.pop(name)[1])
        for name, state in gates.items():
            before, known = memory.known.get(name, (None, {}))
            if state is before:
                continue
            decisions = dict(state.decisions.items())
            if before is None or before.refuses is not state.refuses or before.severity != state.severity:
                turns.look(decisions)
            else:
                turns.look([node for node, one in decisions.items() if known.get(node) is not one])
            turns.look(known.keys() - decisions.keys())
            memory.known[name] = state, decisions
            self._rest(YIELD_S)

    def _compare(self, memory: _Memory, node: str, gates: Mapping[str, GateState]) -> None:
        mark, again_s = self._believed(memory, node)
        if mark is None:
            self._gone(memory, node)
            return
        standing = standing_of(gates, node)
        self._tell(memory, node, mark, standing)
        if self._write:
            refresh_s = self._refresh_s * (1 - SPREAD * self._random())
            due = due_of(standing, mark, wall=self._wall(), refresh_s=refresh_s)
            due = due if due.urgent else Due(min(due.after_s, again_s))
            memory.turns.put(node, mark.uid, due, self._monotonic())

    def _believed(self, memory: _Memory, node: str) -> tuple[ObservedCondition | None, float]:
        """Returns the Node's condition, from a recent own write or from the watch; and in how many seconds to compare
        again, if they differ."""
        mark, written = self._seen.get(node), memory.written.get(node)
        if written is None or mark is None or mark.uid != written.mark.uid:
            return mark, math.inf
        left_s = written.until - self._monotonic()
        if left_s <= 0:
            del memory.written[node]
            return mark, math.inf
        return written.mark, math.inf if mark.says(written.mark) else left_s

    def _tell(self, memory: _Memory, node: str, mark: ObservedCondition, standing: Standing | None) -> None:
        if standing is None:
            memory.stood_at.pop(node, None)
            return
        stands_at = standing.status, standing.reason
        first = (mark.status, mark.reason) if mark.status else (STATUS_TRUE, TOLD_HEALTHY)
        if not self._write:
            first = stands_at  # what an earlier writer reported is unknown
        if memory.stood_at.get(node, first) != stands_at:
            self._on_change(node, mark.uid, standing)
        memory.stood_at[node] = stands_at

    def _gone(self, memory: _Memory, node: str) -> None:
        memory.turns.gone(node)
        memory.written.pop(node, None)
        memory.stood_at.pop(node, None)

    def _write_one(self, memory: _Memory, node: str, urgent: bool, gates: Mapping[str, GateState]) -> None:
        mark, _ = self._believed(memory, node)
        if mark is None:
            self._gone(memory, node)
            return
        standing = standing_of(gates, node)
        # Writes that are not urgent are due by the monotonic clock; the wall clock may have been set back since.
        due = standing is not None and (not urgent or standing.status != mark.status)
        if (due or (standing is None and mark.status)) and self._leads():
            seen = format_time(self._wall())
            same = standing is not None and standing.status == mark.status and mark.changed
            changed = mark.changed if same else seen
            self._send(memory, node, mark.uid, wire.write_condition(mark.uid, standing, changed=changed, seen=seen))
        self._compare(memory, node, gates)

    def _send(self, memory: _Memory, node: str, uid: str, body: bytes) -> None:
        try:
            answer = self._client.patch(
                paths.node_status(node), body, content_type=STRATEGIC_MERGE_PATCH, deadline_s=WRITE_S
            )
            mark = wire.read_mark(answer)
        except NotFound:
            memory.turns.refused(node, uid, self._monotonic(), denied=False)
            self._count("gone")
        except (Forbidden, Invalid, Conflict) as e:
            # A Conflict or Invalid is a Node that was created again, until the watch shows it; or a policy.
            denied = isinstance(e, Forbidden)
            memory.turns.refused(node, uid, self._monotonic(), denied=denied)
            self._failed(e, f"{e}; {REMEDY}" if denied else str(e))
        except (KubeError, CredentialsInvalid, *UNREADABLE) as e:
            memory.turns.failed(node, self._monotonic(), getattr(e, "retry_after_s", None))
            self._failed(e, str(e))
        else:
            monotonic = self._monotonic()
            memory.turns.written(node, monotonic)
            memory.written[node] = _Written(mark, monotonic + SETTLES_S)
            self._count("written")

    def _failed(self, error: Exception, text: str) -> None:
        cause = type(error).__name__
        self._count(cause)
        monotonic = self._monotonic()
        if self._loop.stopping or monotonic - self._logged_at.get(cause, -math.inf) < LOG_AGAIN_S:
            return
        self._logged_at[cause] = monotonic
        log.warning("condition of a node not written", extra={"cause": cause, "error": text})

    def _count(self, result: str) -> None:
        self._counts[result] = self._counts.get(result, 0) + 1
