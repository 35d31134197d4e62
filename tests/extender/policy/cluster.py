"""A cluster by hand: nodes with one health pod a gate, turned good and bad by a test, decided on turn by turn."""

from collections.abc import Iterable, Mapping

from extender.policy.caps import Caps, Limit
from extender.policy.damping import Damping
from extender.policy.decide import Rules, decide
from extender.policy.decision import Decision, GateState
from extender.policy.evidence import HealthPod, NodeEvidence, ObservedNode, Surroundings
from extender.policy.gates import Gate
from extender.policy.memory import Decided, DecisionMemory
from extender.policy.orders import Orders, parse_orders
from extender.policy.snapshot import INHERITED_KICKS, Board
from extender.policy.storm import StormRule
from kube.times import format_time, parse_time

BORN = "2025-06-01T00:00:00Z"
WALL = parse_time("2026-01-01T12:00:00Z") or 0.0
DAY_S = 86400.0


class Cluster:
    """Time is `monotonic`; the wall clock runs beside it. turn() decides on what has changed and what is due."""

    def __init__(self, *gates: Gate, caps: Caps | None = None, storm: StormRule | None = None) -> None:
        self.rules = Rules(gates or (Gate("health"),), caps or Caps(), storm)
        self.monotonic = 100_000.0
        self.wall_ahead = WALL - self.monotonic
        self.nodes: dict[str, ObservedNode] = {}
        self.pods: dict[tuple[str, str], tuple[HealthPod, ...]] = {}
        self.lost: set[str] = set()
        self.swallowing: dict[str, str] = {}
        self.orders = Orders()
        self.changed: dict[str, None] = {}
        self.start()

    def start(self) -> None:
        """A process that has seen nothing yet."""
        self.previous = DecisionMemory()
        self.kicked: list[str] = []
        self.board = Board(self.kicked.extend)
        self.changed = dict.fromkeys(self.nodes)

    @property
    def wall(self) -> float:
        return self.monotonic + self.wall_ahead

    @property
    def surroundings(self) -> Surroundings:
        return Surroundings(orders=self.orders)

    def order(self, **data: str) -> None:
        self.orders = parse_orders(data)
        assert self.orders.faults == ()

    def add(self, *names: str, age_s: float = DAY_S, good: bool = True, **fields: object) -> None:
        for name in names:
            created = BORN if age_s == DAY_S else format_time(self.wall - age_s)
            born_at = self.monotonic - age_s
            self.nodes[name] = ObservedNode(name, f"uid-{name}-{created}", created, born_at, "True", **fields)  # type: ignore[arg-type]
            for gate in self.rules.gates:
                self.pods[name, gate.name] = ()
        if good:
            self.good(*names)
        self.changed.update(dict.fromkeys(names))

    def change(self, name: str, **fields: object) -> None:
        """Of the Node object."""
        before = {field: getattr(self.nodes[name], field) for field in ObservedNode.__slots__}
        self.nodes[name] = ObservedNode(**before | fields)  # type: ignore[arg-type]
        self.changed[name] = None

    def remove(self, *names: str) -> None:
        for name in names:
            del self.nodes[name]
            self.changed[name] = None

    def good(self, *names: str, gate: str = "") -> None:
        self._pod(names, gate, "True", "")

    def bad(self, *names: str, gate: str = "", cause: str = "ContainersNotReady", since: float | None = None) -> None:
        """since: wall seconds, now if not given."""
        self._pod(names, gate, "False", cause, since)

    def _pod(self, names: Iterable[str], gate: str, ready: str, cause: str, since: float | None = None) -> None:
        for name in names:
            for one in [gate] if gate else [gate.name for gate in self.rules.gates]:
                before = self.pods[name, one]
                if before and before[0].ready == ready and before[0].cause == cause:
                    continue
                self.pods[name, one] = (self.pod(name, one, ready, cause, since),)
                self.changed[name] = None

    def pod(self, name: str, gate: str, ready: str, cause: str = "", since: float | None = None) -> HealthPod:
        return HealthPod(
            f"ns/{gate}-{name}",
            f"uid-{gate}-{name}",
            name,
            self.nodes[name].created,
            ready=ready,
            ready_since=format_time(self.wall if since is None else since),
            ready_reason=cause,
            cause=cause,
            message=cause,
            containers_ready=ready,
        )

    def swallow(self, *names: str, namespaces: int = 3) -> None:
        """These alone."""
        self.changed.update(dict.fromkeys(self.swallowing.keys() | set(names)))
        self.swallowing = dict.fromkeys(names, f"pods of {namespaces} namespaces fail to start here")

    def replace(self, name: str, *pods: HealthPod, gate: str = "health") -> None:
        self.pods[name, gate] = pods
        self.changed[name] = None

    def evidence(self, name: str) -> NodeEvidence | None:
        if name not in self.nodes:
            return None
        pods = {gate.name: self.pods[name, gate.name] for gate in self.rules.gates}
        swallows = self.swallowing.get(name, "")
        return NodeEvidence(self.nodes[name], pods, name in self.lost, swallows=swallows)

    def decide(self) -> Decided:
        names = {**self.changed, **dict.fromkeys(self.previous.due(self.monotonic))}
        if self.previous.needs_all(self.surroundings, self.wall):
            names.update(dict.fromkeys(self.nodes))
        evidence = {name: self.evidence(name) for name in names}
        return decide(self.rules, self.previous, evidence, self.surroundings, monotonic=self.monotonic, wall=self.wall)

    def turn(self, after_s: float = 0.0) -> list[str]:
        """The nodes that are to be kicked."""
        self.monotonic += after_s
        decided = self.decide()
        released = self.board.swap(decided.snapshot)
        self.previous.keep(decided)
        self.changed = {}
        return released

    def run(self, seconds: float) -> None:
        """Turns whenever something is due."""
        end = self.monotonic + seconds
        while (at := self.previous.due_at(self.monotonic, self.wall)) <= end:
            self.turn(max(0.0, at - self.monotonic))
        self.monotonic = end
        self.turn()

    def after_the_start(self) -> "Cluster":
        self.turn()
        for _ in range(INHERITED_KICKS):
            self.board.before_kick()
            self.board.after_kick()
        return self

    def state(self, gate: str = "health") -> GateState:
        return self.board.snapshot.gates[gate]

    def closed(self, gate: str = "health") -> set[str]:
        return set(self.state(gate).closed)

    def held(self, gate: str = "health") -> Mapping[str, str]:
        """Who holds each node whose decision is not its verdict."""
        return {name: one.held_by.value for name, one in self.state(gate).decisions.items() if one.held_by}

    def decision(self, name: str, gate: str = "health") -> Decision:
        return self.state(gate).decisions[name]


THIRTY = Limit(percent=30)
CAPS = Caps(cluster=THIRTY, leave_in_pool=1)
GATE = Gate("health", cap=THIRTY, damping=Damping())
STORM = StormRule()


def cluster(count: int, *gates: Gate, caps: Caps = CAPS, storm: StormRule | None = None) -> Cluster:
    """One that was good all the time; by the caps and the damping of the defaults, without storms."""
    made = Cluster(*(gates or (GATE,)), caps=caps, storm=storm)
    made.add(*(f"n{number:03}" for number in range(count)))
    return made.after_the_start()


def names(*numbers: int) -> set[str]:
    return {f"n{number:03}" for number in numbers}
