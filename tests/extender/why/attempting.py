"""Snapshots, and calls of kube-scheduler's that a Board answers from them, as the verbs append them."""

from extender.policy.decision import Decision, GateState
from extender.policy.snapshot import Board, Snapshot
from extender.why.attempts import Attempt
from extender.why.blame import AttemptRecorder
from extender.why.journal import Journal
from extender.why.recorder import closes_in_shadow

LOST, UNHEALTHY = "node(s) lost", "node(s) unhealthy"


def gate(name, nodes, closed=(), *, reason=UNHEALTHY, armed=True, severity="gate"):
    """A gate that knows these nodes and closes some."""
    decisions = {node: Decision(reason if node in closed else "", verdict=reason) for node in nodes}
    return GateState(name, decisions, dict.fromkeys(closed, reason), armed, severity)


def snapshot_of(*gates):
    nodes = frozenset(node for state in gates for node in state.decisions)
    return Snapshot({state.name: state for state in gates}, nodes)


def board_of(*gates):
    board = Board(lambda _: None)
    board.swap(snapshot_of(*gates))
    return board


class Scheduler:
    """Asks about pods, at a time that a test sets; what it is told is remembered."""

    def __init__(self, *gates):
        self.board = board_of(*gates)
        self.journal = Journal()
        self.memory = self.journal.memory
        self.rememberer = AttemptRecorder(self.memory, self.journal.write)

    def attempt(self, names, *, pod="p", namespace="team", uid="u1", at=10.0, mask=-1, nominated=False, exempt=""):
        answer = self.board.look_up(names, mask)
        refused = {} if exempt else answer.refused
        return Attempt(
            namespace,
            pod,
            uid,
            at,
            asked=len(names),
            survivors=len(names) - len(refused),
            refused=refused,
            names=names if closes_in_shadow(answer.snapshot) else (),
            mask=mask,
            snapshot=answer.snapshot,
            exempt=exempt,
            nominated=nominated,
            unknown=bool(answer.unknown),
        )

    def asks(self, names, **options):
        """What is remembered of the pod from now on."""
        return self.rememberer.remember(self.attempt(names, **options))

    def gets_no_answer(self, *, pod="p", namespace="team", uid="u1", at=10.0, why="stale"):
        return self.rememberer.remember(Attempt(namespace, pod, uid, at, unanswered=why))


def blamed(memory, record):
    """(node, gate, reason) of each node that was refused, and of each that a gate in shadow would have."""
    causes = [memory.causes[code] for code in record.codes]
    names = [memory.numbers.names[number] for number in memoryview(record.nodes).cast("I")]
    rows = [(name, cause.gate, cause.reason) for name, cause in zip(names, causes, strict=True)]
    assert [cause.shadow for cause in causes] == [place >= record.refused for place in range(len(causes))]
    return set(rows[: record.refused]), set(rows[record.refused :])
