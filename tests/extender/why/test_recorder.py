"""From a filter call to what is remembered of its pod: the verb's own thread, the recorder's turns, and time."""

import json

import pytest

from extender.cluster.pod_starts import StartingPod
from extender.policy.decision import GateState
from extender.policy.orders import Kind, Order, Orders
from extender.verbs.filter import answer_filter
from extender.why import attempts as attempts_module
from extender.why import recorder as module
from extender.why.attempts import Attempts
from extender.why.journal import Journal
from extender.why.pods import FORGET_AFTER_S, Pods
from extender.why.recorder import Recorder
from tests.extender.builders import node, pod, seen
from tests.extender.verbs.test_filter import World
from tests.extender.why.attempting import blamed, board_of, gate, snapshot_of
from tests.extender.world import PODS
from tools.kit.clock import Clock

UNHEALTHY = "node(s) reported unhealthy"


@pytest.fixture
def world():
    return synced("gates: [{name: base}]")


def synced(config):
    world = World(config)
    world.services.index.replace_nodes([node(name) for name in ("h1", "h2", "u1")])
    world.services.index.replace_pods(PODS, [pod("h1"), pod("h2"), pod("u1", Ready="False", NodeHealthy="False")])
    world.see()
    return world


def asks(world, names, *, name="train-7", namespace="team-a", uid="u-7", **more):
    meta = {"name": name, "namespace": namespace, "uid": uid}
    body = {"Pod": {"metadata": meta, **more}, "Nodes": None, "NodeNames": names}
    return json.loads(answer_filter(world.services, json.dumps(body).encode()).body)


def remembered(world, key="team-a/train-7"):
    world.services.recorder.turn()
    return world.services.recorder.journal.memory.pods.get(key)


def test_what_a_filter_call_refused_is_remembered_of_its_pod(world):
    asks(world, ["h1", "u1", "h2"])
    record = remembered(world)
    memory = world.services.recorder.journal.memory
    assert ({("u1", "base", UNHEALTHY)}, set()) == blamed(memory, record)
    assert (3, 2, True, "u-7", 1000.0) == (record.asked, record.passed, record.complete, record.uid, record.at)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param({"names": ["u1"]}, ["train-7"], id="all that was asked about"),
        pytest.param({"names": ["u1", "h1"]}, [], id="one node is left"),
        pytest.param({"names": []}, [], id="asked about none"),
        pytest.param({"names": ["u1"], "status": {"nominatedNodeName": "u1"}}, [], id="the nominated node alone"),
        pytest.param({"names": ["u1"], "namespace": "kube-system"}, [], id="an exempt pod"),
    ],
)
def test_a_pod_that_was_refused_everywhere_is_told_of(world, call, expected):
    told = []
    world.services.recorder._on_refused_everywhere = lambda attempt: told.append(attempt.name)
    asks(world, call.pop("names"), **call)
    world.services.recorder.turn()
    assert expected == told


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param({"names": ["h1", "h2"]}, {"refused": 0, "passed": 2}, id="all nodes have passed"),
        pytest.param({"names": []}, {"asked": 0, "passed": 0}, id="it asks about none"),
        pytest.param(
            {"names": ["u1"], "status": {"nominatedNodeName": "u1"}},
            {"nominated": True, "refused": 1},
            id="it asks about the nominated node alone",
        ),
        pytest.param(
            {"names": ["u1", "h1"], "status": {"nominatedNodeName": "u1"}},
            {"nominated": False, "refused": 1},
            id="it asks about all nodes",
        ),
        pytest.param(
            {"names": ["u1"], "namespace": "kube-system"},
            {"exempt": "namespace", "refused": 0, "passed": 1},
            id="the pod is exempt",
        ),
    ],
)
def test_what_is_remembered_of_a_call(world, call, expected):
    asks(world, **call)
    record = remembered(world, f"{call.get('namespace', 'team-a')}/train-7")
    assert expected == {name: getattr(record, name) for name in expected}


def test_a_call_that_gets_no_verdict_is_counted_and_leaves_the_last_one(world):
    asks(world, ["u1"])
    world.clock.time += 1000.0
    world.caches["pods"].age = 1000.0
    asks(world, ["u1"])
    record = remembered(world)
    assert (1, 1, 1, "stale") == (record.answered, record.refused, record.unanswered, record.unanswered_why)


@pytest.mark.parametrize(
    "body", [b"rubbish", b'{"Pod": null, "NodeNames": ["u1"]}', b'{"Pod": {}, "NodeNames": ["u1"]}']
)
def test_a_call_for_no_pod_is_not_remembered(world, body):
    answer_filter(world.services, body)
    world.services.recorder.turn()
    assert len(world.services.recorder.journal.memory.pods) == 0


def test_a_recorder_that_dies_is_no_reason_to_restart_what_answers_kube_scheduler(world):
    world.services.start()
    world.services.recorder.stop()
    assert "recorder" not in world.services.unhealthy()
    world.services.stop()


# Without verbs


class Recording:
    def __init__(self, *gates):
        self.clock = Clock(100.0)
        self.board = board_of(*gates)
        self.attempts = Attempts(self.clock)
        self.recorder = Recorder(self.attempts, self.board, Journal(), monotonic=self.clock)
        self.memory = self.recorder.journal.memory

    def asks(self, names, *, pod="p", uid="u"):
        answer = self.board.look_up(names)
        kept = names if self.attempts.keep_names else ()
        self.attempts.add(
            attempts_module.Attempt(
                "ns",
                pod,
                uid,
                self.clock(),
                len(names),
                len(answer.survivors),
                answer.refused,
                kept,
                -1,
                answer.snapshot,
                unknown=bool(answer.unknown),
            )
        )


def test_what_a_gate_in_shadow_would_have_refused_is_seen_once_it_closes_a_node():
    recording = Recording(gate("dns", ["n1", "n2"], armed=False))
    recording.recorder.turn()
    recording.asks(["n1", "n2"])
    assert [()] == [one.names for one in recording.attempts.take(1)]
    recording.board.swap(snapshot_of(gate("dns", ["n1", "n2"], ["n2"], armed=False)))
    recording.recorder.turn()
    recording.asks(["n1", "n2"])
    recording.recorder.turn()
    record = recording.memory.pods.get("ns/p")
    assert (set(), {("n2", "dns", "node(s) unhealthy")}) == blamed(recording.memory, record)


def test_many_attempts_are_taken_in_turns_that_give_way(monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 3)
    recording = Recording(gate("base", ["n1"], ["n1"]))
    for number in range(7):
        recording.asks(["n1"], pod=f"p{number}")
    assert [recording.recorder.turn() for _ in range(3)] == [module.YIELD_S, module.YIELD_S, module.LOOK_EVERY_S]
    assert len(recording.memory.pods) == 7


def test_attempts_that_were_dropped_are_told(monkeypatch):
    monkeypatch.setattr(attempts_module, "WAITING_NAMES_MAX", 2 * (attempts_module.ATTEMPT_NAMES + 1))
    recording = Recording(gate("base", ["n1"], ["n1"]))
    for number in range(5):
        recording.asks(["n1"], pod=f"p{number}")
    recording.recorder.turn()
    assert (2, 3) == (len(recording.memory.pods), recording.memory.dropped.attempts)


def test_a_pod_that_is_gone_ages_out():
    recording = Recording(gate("base", ["n1"], ["n1"]))
    recording.asks(["n1"])
    recording.recorder.turn()
    recording.clock.time += FORGET_AFTER_S + module.AGES_EVERY_S
    recording.recorder.turn()
    assert (0, 0) == (len(recording.memory.pods), recording.memory.pods.names)


def test_while_more_is_remembered_than_may_be_nothing_new_is_taken(world, monkeypatch):
    """Else many small pods would be there still, a few hundred going in each turn, when large ones have come."""
    monkeypatch.setattr(module, "FORGET_AT_ONCE", 2)
    recorder, memory = world.services.recorder, world.services.recorder.journal.memory
    recorder.turn()
    memory.pods = Pods(names_max=10)
    for number in range(4):
        asks(world, ["u1"], name=f"small-{number}")
    recorder.turn()
    for number in range(2):
        asks(world, ["x" * 200], name=f"large-{number}")
    found = []
    for _ in range(4):
        asks(world, ["u1"])
        recorder.turn()
        found.append([one.name for one in memory.pods])
    small, large = [f"small-{number}" for number in range(4)], ["large-0", "large-1"]
    assert [[*small[2:], *large, "train-7"], [*large, "train-7"], ["train-7"], ["train-7"]] == found


def test_names_of_nodes_that_are_no_more_are_forgotten_with_the_pods_that_were_refused_them(monkeypatch):
    monkeypatch.setattr(module, "NUMBERS_SPARE", 10)
    recording = Recording(gate("base", ["n0"], ["n0"]))
    for number in range(40):
        name = f"n{number}"
        recording.board.swap(snapshot_of(gate("base", [name], [name])))
        recording.asks([name], pod="p" if number < 39 else "q")
        recording.clock.time += module.AGES_EVERY_S
        recording.recorder.turn()
        assert len(recording.memory.numbers) <= 13
    found = [blamed(recording.memory, recording.memory.pods.get(f"ns/{name}"))[0] for name in "pq"]
    assert found == [{("n38", "base", "node(s) unhealthy")}, {("n39", "base", "node(s) unhealthy")}]


def test_a_snapshot_without_gates_refuses_nothing():
    recording = Recording(GateState("base", {}, {}))
    recording.asks(["n1"])
    recording.recorder.turn()
    assert recording.memory.pods.get("ns/p").unknown == ("n1",)


def test_what_was_decided_is_history():
    recording = Recording(gate("base", ["n1", "n2"]))
    before = recording.board.snapshot
    for closed in (["n1"], [], ["n2"]):
        after = snapshot_of(gate("base", ["n1", "n2"], closed))
        recording.recorder.on_decided(before, after, recording.clock())
        before = after
        recording.clock.time += 1
    recording.recorder.turn()
    assert [(1, 100.0, "closed", "n1"), (2, 101.0, "opened", "n1"), (3, 102.0, "closed", "n2")] == [
        (event.serial, event.at, event.kind, event.node) for event in recording.memory.events
    ]


def test_thousands_that_close_at_once_are_told_in_turns_that_give_way():
    nodes = [f"n{number}" for number in range(200)]
    recording = Recording(gate("base", nodes))
    after = snapshot_of(gate("base", nodes, nodes))
    recording.recorder.on_decided(recording.board.snapshot, after, recording.clock())
    pauses = []
    while not pauses or pauses[-1] == module.YIELD_S:
        pauses.append(recording.recorder.turn())
    assert (2, 200) == (len(pauses), len(recording.memory.events))
    assert {event.node for event in recording.memory.events} == set(nodes)


def test_decisions_that_come_faster_than_they_are_told_are_counted(monkeypatch):
    monkeypatch.setattr(module, "DECISIONS_MAX", 2)
    recording = Recording(gate("base", ["n1"]))
    for _ in range(5):
        recording.recorder.on_decided(recording.board.snapshot, recording.board.snapshot, 1.0)
    recording.recorder.turn()
    assert recording.memory.dropped.decisions == 3


def test_orders_are_history_from_when_they_are_known_until_they_end():
    recording = Recording(gate("base", ["n1"]))
    wall = Clock(1000.0)
    order = Order("rma", Kind.HOLD, node="n1", author="ana", reason="RMA", expires=2000.0)
    recording.recorder = Recorder(
        recording.attempts,
        recording.board,
        recording.recorder.journal,
        orders=lambda: Orders((order,), ("b: rubbish",)),
        monotonic=recording.clock,
        wall=wall,
    )
    recording.recorder.turn()
    wall.time = 2000.0
    recording.recorder.turn()
    assert ["hold rma by ana: RMA", "ignored: b: rubbish", "hold rma has ended by ana: RMA"] == [
        event.note for event in recording.memory.events
    ]


STARTS = "gates: [{name: base}, {name: starts, podStarts: {namespaces: 2}}]"
TEAMS = ("team-a", "team-b")


def start(team, node, **status):
    """A pod of the team's on this node, as the watch of starting pods reports it."""
    owner = {"kind": "ReplicaSet", "name": "web", "uid": f"web-{team}", "controller": True}
    meta = {"name": f"web-{node}", "namespace": team, "uid": f"u-{team}-{node}", "ownerReferences": [owner]}
    return seen(StartingPod, {"metadata": meta, "spec": {"nodeName": node}, "status": {"phase": "Pending", **status}})


def swallowed(world, *, asked):
    """The nodes that are black holes once a pod of each team has started on h1 and was rejected on h2."""
    starts = world.services.starts
    for team in TEAMS:
        starts.upsert(start(team, "h1"))
        starts.remove(start(team, "h1"))
        if asked:
            asks(world, ["h1", "h2"], name="web-h2", namespace=team, uid=f"u-{team}-h2")
        starts.upsert(start(team, "h2", phase="Failed", reason="UnexpectedAdmissionError"))
    before = starts.look()[0]
    world.services.recorder.turn()
    world.clock.time += 1.0
    return [*before], [*starts.look()[0]]


@pytest.mark.parametrize(("asked", "expected"), [(True, ([], ["h2"])), (False, ([], []))])
def test_a_failed_start_counts_as_soon_as_the_filter_call_of_its_pod_is_recorded(asked, expected):
    assert expected == swallowed(synced(STARTS), asked=asked)
