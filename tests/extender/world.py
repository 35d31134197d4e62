"""Index, decider and board of an extender, without threads or a network: a clock and a Lease watch that a test sets."""

from datetime import datetime

from extender.cluster.decider import Decider
from extender.cluster.health_pods import GatePods, PodList
from extender.cluster.heartbeats import KUBELETS, Heartbeats
from extender.cluster.index import Index
from extender.policy.decide import Rules
from extender.policy.gates import Gate
from extender.policy.snapshot import INHERITED_KICKS, Board
from tests.extender.builders import CREATED
from tools.kit.clock import Clock

PODS = PodList("readygate-system", "app.kubernetes.io/name=readygate-agent")


class OneList(Index):
    """An index for which all gates find their health pods in one list."""

    def __init__(self, *, daemon_set="readygate-agent", gate="health", **options):
        super().__init__(speakers=[GatePods(gate, PODS, daemon_set)], **options)

    def replace_pods(self, pods):
        super().replace_pods(PODS, pods)

    def upsert_pod(self, pod):
        super().upsert_pod(PODS, pod)

    def remove_pod(self, pod):
        super().remove_pod(PODS, pod)


class LeaseWatchOf:
    """What their store asks of the reflector of Leases."""

    def __init__(self):
        self.last_word = self.list_began = self.list_ahead_s = None
        self.counters = {}


def kubelets(limit_s, *, clock, **options):
    """The store of the kubelets' Leases."""
    return Heartbeats(limit_s, KUBELETS, monotonic=clock, **options)


class World:
    """An index, the store of Leases, a decider and a board. decide() is a turn of the decider's thread; `then` is the
    index, `then.leases` that store, with a turn after each call."""

    def __init__(self, *, daemon_set="readygate-agent"):
        self.clock = Clock(100.0)
        self.lease_watch = LeaseWatchOf()
        self.reads_due = 0
        self.kicked = []
        self.woken = 0
        self.leases = kubelets(
            20.0,
            clock=self.clock,
            on_change=self.wake,
            on_read_due=self.read_due,
            watch=lambda: None if self.contact is None else self.lease_watch,
        )
        self.index = OneList(
            daemon_set=daemon_set,
            on_change=self.wake,
            kubelets=self.leases,
            monotonic=self.clock,
            wall=lambda: datetime.fromisoformat(CREATED).timestamp() + self.clock.time - 100.0,
        )
        self.then = Then(self, self.index)
        self.board = Board(self.kicked.extend)
        self.decider = Decider(
            self.index,
            Rules((Gate("health", missing_grace_s=30.0),)),
            self.board,
            on_release=self.kicked.extend,
            monotonic=self.clock,
            sleep=lambda _: None,
        )

    def wake(self):
        self.woken += 1

    def read_due(self):
        self.reads_due += 1

    @property
    def contact(self):
        """The last word of the Lease watch; there is none before a test sets it."""
        return self.lease_watch.last_word

    @contact.setter
    def contact(self, monotonic):
        self.lease_watch.last_word = monotonic

    def decide(self):
        """The seconds it may sleep now."""
        return self.decider.turn()

    @property
    def reasons(self):
        return self.board.snapshot.reasons

    def listed(self, nodes, pods):
        self.index.replace_nodes(nodes)
        self.index.replace_pods(pods)
        self.decide()
        for _ in range(INHERITED_KICKS):  # those of the start
            self.board.before_kick()
            self.board.after_kick()
        self.kicked.clear()
        return self

    def refuse(self, *names):
        """What a request does that finds these nodes closed."""
        assert list(names) == list(self.board.look_up(names).refused)


class Then:
    def __init__(self, world, of):
        self._world = world
        self._of = of

    @property
    def leases(self):
        return Then(self._world, self._world.leases)

    def __getattr__(self, name):
        def call(*arguments):
            getattr(self._of, name)(*arguments)
            self._world.decide()

        return call
