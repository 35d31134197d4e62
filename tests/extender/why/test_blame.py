"""What is remembered of one attempt: who keeps the pod off which node."""

import pytest

from extender.why.blame import SAMPLED_FROM, UNKNOWN_SHOWN
from tests.extender.why.attempting import LOST, UNHEALTHY, Scheduler, blamed, gate, snapshot_of

NODES = ["n1", "n2", "n3", "n4"]
MANY = [f"n{number}" for number in range(SAMPLED_FROM + 20)]


@pytest.mark.parametrize(
    ("gates", "mask", "refused", "shadow"),
    [
        pytest.param([gate("base", NODES)], -1, set(), set(), id="all nodes are open"),
        pytest.param(
            [gate("base", NODES, ["n1", "n3"])],
            -1,
            {("n1", "base", UNHEALTHY), ("n3", "base", UNHEALTHY)},
            set(),
            id="a gate closes two",
        ),
        pytest.param(
            [gate("base", NODES, ["n1"], reason=LOST), gate("gpu", NODES, ["n1", "n2"])],
            -1,
            {("n1", "base", LOST), ("n2", "gpu", UNHEALTHY)},
            set(),
            id="of two gates that close a node the first one is to blame",
        ),
        pytest.param(
            [gate("base", NODES, ["n1"]), gate("gpu", NODES, ["n2"])],
            0b10,
            {("n2", "gpu", UNHEALTHY)},
            set(),
            id="a gate that does not speak for the pod is not to blame",
        ),
        pytest.param(
            [gate("base", NODES, ["n1"]), gate("dns", NODES, ["n1", "n2"], armed=False)],
            -1,
            {("n1", "base", UNHEALTHY)},
            {("n1", "dns", UNHEALTHY), ("n2", "dns", UNHEALTHY)},
            id="a gate in shadow would have refused",
        ),
        pytest.param(
            [gate("disk", NODES, ["n1"], severity="preferNot"), gate("fan", NODES, ["n2"], severity="warn")],
            -1,
            set(),
            set(),
            id="what only warns or lowers a score refuses nothing",
        ),
    ],
)
def test_who_is_to_blame(gates, mask, refused, shadow):
    scheduler = Scheduler(*gates)
    record = scheduler.asks(NODES, mask=mask)
    assert (refused, shadow) == blamed(scheduler.memory, record)
    assert (4, 4 - len(refused), True) == (record.asked, record.passed, record.complete)
    assert record == scheduler.memory.pods.get("team/p")


def test_the_blame_is_by_the_snapshot_that_the_answer_was_made_of():
    """Not by the newest one: the node may have opened since."""
    scheduler = Scheduler(gate("base", NODES, ["n1"]))
    attempt = scheduler.attempt(NODES)
    later = Scheduler(gate("base", NODES, ["n2"]))
    scheduler.board = later.board
    scheduler.asks(NODES, pod="other")
    record = scheduler.rememberer.remember(attempt)
    assert ({("n1", "base", UNHEALTHY)}, set()) == blamed(scheduler.memory, record)


def test_only_the_last_complete_attempt_counts():
    scheduler = Scheduler(gate("base", NODES, ["n1", "n2"]))
    scheduler.asks(NODES, at=1.0)
    record = scheduler.asks(["n2"], at=5.0)
    assert ({("n2", "base", UNHEALTHY)}, set()) == blamed(scheduler.memory, record)
    assert (1.0, 5.0, 2, 2) == (record.first, record.last, record.answered, record.refused_times)
    record = scheduler.asks(["n3", "n4"], at=6.0)
    assert (0, 3, 2) == (record.refused, record.answered, record.refused_times)


def test_an_attempt_that_was_not_answered_leaves_the_last_answer():
    scheduler = Scheduler(gate("base", NODES, ["n1"]))
    scheduler.asks(NODES, at=1.0)
    record = scheduler.gets_no_answer(at=3.0)
    assert ({("n1", "base", UNHEALTHY)}, set()) == blamed(scheduler.memory, record)
    assert (1.0, 3.0, 1, 1, "stale") == (
        record.at,
        record.last,
        record.answered,
        record.unanswered,
        record.unanswered_why,
    )


def test_a_pod_that_was_never_answered():
    record = Scheduler(gate("base", NODES)).gets_no_answer(at=3.0)
    assert (None, 0, 1) == (record.at, record.answered, record.unanswered)


def test_a_nominated_node_is_asked_about_alone_and_then_all_in_the_same_attempt():
    scheduler = Scheduler(gate("base", NODES, ["n1", "n2"]))
    record = scheduler.asks(["n1"], at=1.0, nominated=True)
    assert (True, False, 1, 1) == (record.nominated, record.complete, record.answered, record.refused_times)
    record = scheduler.asks(["n1", "n2", "n3"], at=1.1)
    assert (False, True, 1, 1) == (record.nominated, record.complete, record.answered, record.refused_times)
    assert ({("n1", "base", UNHEALTHY), ("n2", "base", UNHEALTHY)}, set()) == blamed(scheduler.memory, record)
    record = scheduler.asks(["n3"], at=2.0, nominated=True)
    assert (False, True, 2, 1) == (record.nominated, record.complete, record.answered, record.refused_times)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(SAMPLED_FROM - 1, True, id="fewer than kube-scheduler always looks for: that was all"),
        pytest.param(SAMPLED_FROM, False, id="it may have found enough"),
        pytest.param(len(MANY), True, id="all nodes there are"),
    ],
)
def test_a_sample_of_the_nodes_is_not_complete(asked, expected):
    record = Scheduler(gate("base", MANY, ["n1"])).asks(MANY[:asked])
    assert (expected, asked) == (record.complete, record.asked)


def test_a_pod_that_is_exempt_was_refused_nothing():
    record = Scheduler(gate("base", NODES, ["n1"], armed=False)).asks(NODES, exempt="namespace")
    assert ("namespace", 0, b"", True) == (record.exempt, record.refused, record.nodes[:0], record.complete)


@pytest.mark.parametrize(
    ("names", "shown", "count", "complete"),
    [
        pytest.param(["new-1", "n1", "new-2"], {"new-1", "new-2"}, 2, True, id="nodes that no snapshot has yet"),
        pytest.param(
            ["n1", "x\n\x1b[31m", "a" * 254, "<b>"], set(), 3, False, id="names that no API server would have"
        ),
        pytest.param(["n1", *(f"x{i}" for i in range(9))], {f"x{i}" for i in range(9)}, 9, False, id="too many"),
    ],
)
def test_names_that_no_snapshot_holds_are_shown_a_few_at_most(names, shown, count, complete):
    scheduler = Scheduler(gate("base", NODES, ["n1"]))
    record = scheduler.asks(names)
    assert set(record.unknown) <= shown
    assert (min(len(shown), UNKNOWN_SHOWN), count, complete) == (
        len(record.unknown),
        record.unknown_count,
        record.complete,
    )
    assert ({("n1", "base", UNHEALTHY)}, set()) == blamed(scheduler.memory, record)
    assert list(scheduler.memory.numbers.names) == ["n1"]


def test_as_many_unknown_names_as_there_are_closed_nodes_are_not_taken_for_them():
    scheduler = Scheduler(gate("base", NODES, ["n1"]))
    scheduler.asks(NODES)
    record = scheduler.asks(["new"])
    assert (set(), set()) == blamed(scheduler.memory, record)
    assert (("new",), 1) == (record.unknown, record.unknown_count)


def test_pods_that_were_refused_every_closed_node_share_what_is_remembered_of_that():
    scheduler = Scheduler(gate("base", NODES, ["n1", "n3"]))
    first, second = scheduler.asks(NODES, pod="a"), scheduler.asks(NODES, pod="b")
    assert first.nodes is second.nodes
    scheduler.journal.renew(scheduler.memory.renumbered())
    scheduler.rememberer.forget_numbers()
    third = scheduler.asks(NODES, pod="c")
    assert blamed(scheduler.memory, scheduler.memory.pods.get("team/a")) == blamed(scheduler.memory, third)


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param({"pod": "../../etc/passwd"}, id="a path"),
        pytest.param({"pod": "p\r\nX: y"}, id="two lines"),
        pytest.param({"pod": "p\n"}, id="a line's end"),
        pytest.param({"namespace": "<script>"}, id="markup"),
        pytest.param({"namespace": "a.b"}, id="a namespace with a point"),
        pytest.param({"namespace": ""}, id="no namespace"),
        pytest.param({"pod": ""}, id="no name"),
        pytest.param({"namespace": "a/b"}, id="a slash"),
        pytest.param({"uid": "'; drop"}, id="a uid that is none"),
        pytest.param({"pod": "p\uff4fd"}, id="letters of another width"),
    ],
)
def test_a_pod_that_no_api_server_would_have_is_not_remembered(hostile):
    scheduler = Scheduler(gate("base", NODES, ["n1"]))
    assert scheduler.asks(NODES, **hostile) is None
    assert len(scheduler.memory.pods) == 0


def test_another_pod_of_the_same_name_begins_anew():
    scheduler = Scheduler(gate("base", NODES, ["n1"]))
    scheduler.asks(NODES, at=1.0)
    record = scheduler.asks(["n2"], uid="u2", at=9.0)
    assert ("u2", 9.0, 1, 0) == (record.uid, record.first, record.answered, record.refused_times)
    record = scheduler.asks(["n1"], uid="u1", at=9.5)
    assert ("u1", 9.5, 1, 1, 1) == (
        record.uid,
        record.first,
        record.answered,
        record.refused_times,
        len(scheduler.memory.pods),
    )


def test_gates_that_come_and_go_do_not_use_up_the_causes():
    scheduler = Scheduler(gate("base", NODES, ["n1"]))
    for number in range(400):
        scheduler.board = Scheduler(gate(f"g{number}", NODES, ["n1"])).board
        record = scheduler.asks(NODES)
    assert ({("n1", "", UNHEALTHY)}, set()) == blamed(scheduler.memory, record)
    assert len(scheduler.memory.causes) == 255


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param({}, True, id="the node was left"),
        pytest.param({"node": "u1"}, False, id="the node was refused"),
        pytest.param({"node": "gone"}, False, id="a node that no snapshot holds was refused"),
        pytest.param({"node": "u1", "exempt": "namespace"}, True, id="an exempt pod is refused no node"),
        pytest.param({"uid": "u2"}, False, id="another pod of that name"),
        pytest.param({"namespace": "others"}, False, id="a pod of that name in another namespace"),
    ],
)
def test_a_pod_was_left_its_node_if_the_last_answer_did_not_refuse_it(asked, expected):
    scheduler = Scheduler(gate("base", ["h1", "u1"], ["u1"]))
    scheduler.asks(["h1", "u1", "gone"], exempt=asked.get("exempt", ""))
    of = {"namespace": "team", "name": "p", "uid": "u1", "node": "h1"}
    assert expected == scheduler.journal.left_node(**of | {key: asked[key] for key in asked if key != "exempt"})


def test_a_pod_that_got_no_answer_was_left_no_node():
    scheduler = Scheduler(gate("base", ["h1"]))
    scheduler.gets_no_answer()
    assert not scheduler.journal.left_node("team", "p", "u1", "h1")
    scheduler.asks(["h1"])
    assert scheduler.journal.left_node("team", "p", "u1", "h1")


def test_a_pod_of_which_only_the_first_attempt_was_refused_the_node_was_left_it():
    scheduler = Scheduler(gate("base", ["h1"], ["h1"]))
    scheduler.asks(["h1"])
    assert not scheduler.journal.left_node("team", "p", "u1", "h1")
    scheduler.board.swap(snapshot_of(gate("base", ["h1"])))
    scheduler.asks(["h1"])
    assert scheduler.journal.left_node("team", "p", "u1", "h1")
