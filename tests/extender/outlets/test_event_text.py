"""What Events say, and which of them are written when."""

import itertools

import pytest

from extender.outlets.event_text import MESSAGE_LIMIT, About, EventText, blames_of, cause_of, of_node, of_pod
from extender.outlets.node_condition_text import standing_of
from extender.outlets.pending_writes import DENIED_S, STALE_S, WAITING_MAX, PendingWrites, Waiting
from extender.policy.snapshot import Snapshot
from tests.extender.outlets.gate_states import closed, gate, gates, opened

POD = About("Pod", "shop", "web-1", "u1")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(
            gate("a", n=closed("not ready", "dns")),
            (True, "NodeClosed", "closed: gate a: with a health pod that is not Ready: dns"),
            id="closed",
        ),
        pytest.param(
            gate("a", n=closed("lost")),
            (True, "NodeClosed", "closed: gate a: lost: the kubelet no longer reports"),
            id="closed, for nothing is known of it",
        ),
        pytest.param(gate("a", n=opened()), (False, "NodeOpened", "open at gate a"), id="opened"),
        pytest.param(
            gate("a", n=opened("missing", held_by="cap")),
            (True, "NodeHeldOpen", "held open: gate a: without a health pod (cap)"),
            id="held open",
        ),
        pytest.param(
            gate("a", armed=False, n=closed("missing")),
            (True, "NodeWouldBeClosed", "would be closed, were the gate armed: gate a: without a health pod"),
            id="in shadow",
        ),
    ],
)
def test_what_is_said_of_a_node(state, expected):
    occasion = of_node("n", "uid-n", standing_of(gates(state), "n"))
    assert (About("Node", "", "n", "uid-n"), "") == (occasion.about, occasion.cause)
    assert expected == (occasion.warning, occasion.reason, occasion.message)


def snapshot(*states):
    return Snapshot(gates(*states), frozenset(node for state in states for node in state.decisions))


def refused(*states, mask=-1, more=()):
    """What is said where all that these close is refused."""
    shot = snapshot(*states)
    names = {**shot.view(mask & shot.refusing), **dict.fromkeys(more, "node(s) without a health pod")}
    return of_pod(POD, shot, blames_of(shot, mask, names))


SEE = ". See: readygate why pod shop/web-1"


@pytest.mark.parametrize(
    ("occasion", "expected"),
    [
        pytest.param(
            refused(gate("a", n1=closed("not ready", "dns"))),
            "readygate refused the one node that kube-scheduler asked about: gate a: n1: with a health pod that is "
            "not Ready: dns",
            id="one node",
        ),
        pytest.param(
            refused(gate("a", **{f"n{i}": closed("missing") for i in range(1, 10)})),
            "readygate refused all 9 nodes that kube-scheduler asked about: gate a: n1, n2, n3 and 6 more: without a "
            "health pod",
            id="three names and a count",
        ),
        pytest.param(
            refused(
                gate("a", n1=closed("unhealthy", "cni"), n2=closed("missing")),
                gate("b", n1=closed("missing"), n3=closed("missing")),
            ),
            "readygate refused all 3 nodes that kube-scheduler asked about: gate a: n1: reported unhealthy: cni; "
            "gate a: n2: without a health pod; gate b: n3: without a health pod",
            id="by two gates: the first one of each node",
        ),
        pytest.param(
            refused(gate("a", n1=closed("unhealthy")), gate("b", n1=closed("missing")), mask=2),
            "readygate refused the one node that kube-scheduler asked about: gate b: n1: without a health pod",
            id="only gates that speak for the pod",
        ),
        pytest.param(
            refused(gate("a", n1=closed("missing")), more=["new"]),
            "readygate refused all 2 nodes that kube-scheduler asked about: gate a: n1: without a health pod; new: "
            "without a health pod",
            id="a node no gate knows yet",
        ),
    ],
)
def test_what_is_said_of_a_pod_that_was_refused_everywhere(occasion, expected):
    assert (True, "RefusedOnAllNodes", expected + SEE) == (occasion.warning, occasion.reason, occasion.message)


def test_it_is_of_bounded_length_and_says_in_any_case_where_to_look_on():
    long = closed("unhealthy", "x" * 5000)
    occasion = refused(*(gate(f"g{i}", **{f"n{i}": long}) for i in range(20)))
    assert (MESSAGE_LIMIT, True) == (len(occasion.message), occasion.message.endswith(SEE))


def test_the_cause_is_the_gates_and_reasons_not_the_nodes():
    first, second = snapshot(gate("a", n1=closed("missing"))), snapshot(gate("a", n2=closed("missing", "dns")))
    another = snapshot(gate("a", n1=closed("unhealthy")))
    causes = [cause_of(blames_of(shot, -1, shot.view(-1))) for shot in (first, second, another)]
    assert (True, False) == (causes[0] == causes[1], causes[0] == causes[2])


# Which are written when.

serial = itertools.count()


class Played:
    """A backlog with a clock; `sent` holds the messages that were written."""

    def __init__(self, per_second=5.0):
        self.time, self.sent = 1000.0, []
        self.backlog = PendingWrites(per_second=per_second, random=lambda: 0.0)

    def add(self, message, uid="u1", kind="Node", cause=""):
        about = About(kind, "", uid, uid)
        occasion = EventText(about, warning=True, reason="R", message=message, cause=cause)
        self.backlog.add(Waiting(occasion, self.time, 0.0, f"{next(serial)}"))

    def write(self, seconds):
        end = self.time + seconds
        while self.backlog.next_at(self.time) <= end:
            self.time = max(self.time, self.backlog.next_at(self.time))
            entry = self.backlog.take(self.time)
            if entry is not None:
                self.sent.append(entry.occasion.message)
                self.backlog.written(entry, self.time)
        self.time = end


def test_of_one_object_the_newest_waits():
    played = Played()
    for message in ("closed", "opened", "closed again"):
        played.add(message)
    played.write(1)
    assert ["closed again"] == played.sent


def test_a_pod_is_told_each_cause_once():
    played = Played()
    for cause in ("x", "x", "y", "x", "y"):
        played.add(cause, kind="Pod", cause=cause)
        played.write(1)
    played.add("another pod", uid="u2", kind="Pod", cause="x")
    played.write(1)
    assert ["x", "y", "another pod"] == played.sent


def test_a_cause_that_gave_way_to_another_before_it_was_told_is_told_when_it_is_back():
    played = Played()
    for cause in ("x", "y"):
        played.add(cause, kind="Pod", cause=cause)
    played.write(1)
    for cause in ("x", "y", "x"):
        played.add(cause, kind="Pod", cause=cause)
        played.write(1)
    assert ["y", "x"] == played.sent


def test_what_waited_for_too_long_was_not_told_and_is_when_it_comes_again():
    played = Played()
    played.add("while nobody could write", kind="Pod", cause="x")
    played.backlog.failed(played.backlog.take(played.time), played.time, STALE_S)
    played.time += STALE_S + 1
    played.write(1)
    assert ([], 1) == (played.sent, played.backlog.dropped)
    for message in ("again", "and again"):
        played.add(message, kind="Pod", cause="x")
        played.write(1)
    assert ["again"] == played.sent


def test_a_node_that_flaps_is_told_a_few_times_and_then_once_a_minute_what_it_is_then():
    played = Played()
    for second in range(600):
        played.add(f"{second}")
        played.write(1)
    assert 14 <= len(played.sent) <= 16
    assert "0" == played.sent[0]


def test_a_thousand_at_once_are_rationed_and_more_than_that_dropped():
    played = Played(per_second=5)
    for number in range(2 * WAITING_MAX):
        played.add("m", uid=f"u{number}")
    assert (WAITING_MAX, WAITING_MAX) == (played.backlog.waiting, played.backlog.dropped)
    played.write(60)
    assert 5 * 60 <= len(played.sent) <= 5 * 60 + 10
    played.write(1000)
    assert len(played.sent) <= 5 * STALE_S + 10  # what has waited for five minutes is no news
    assert 0 == played.backlog.waiting


def test_after_a_failure_it_waits_longer_and_longer_and_is_written_then_unless_there_is_news():
    played = Played()
    played.add("old")
    times = []
    for _ in range(4):
        played.time = max(played.time, played.backlog.next_at(played.time))
        times.append(played.time)
        played.backlog.failed(played.backlog.take(played.time), played.time, None)
    assert [0.5, 1.0, 2.0] == [later - sooner for sooner, later in itertools.pairwise(times)]
    played.add("new")
    played.write(10)
    assert ["new"] == played.sent


def test_three_that_are_denied_and_no_other_is_tried_for_five_minutes():
    played = Played()
    for number in range(10):
        played.add("m", uid=f"u{number}")
    tried = 0
    while played.backlog.next_at(played.time) < 1000.0 + DENIED_S - 1:
        played.time = max(played.time, played.backlog.next_at(played.time))
        tried += 1
        played.backlog.refused(played.backlog.take(played.time), played.time, denied=True)
    assert 3 == tried


def test_one_namespace_that_is_about_to_go_keeps_no_other_waiting():
    played = Played()
    for uid in ("a", "b"):
        played.add(uid, uid=uid)
    played.backlog.refused(played.backlog.take(played.time), played.time, denied=True)
    played.write(1)
    assert (["b"], 1) == (played.sent, played.backlog.dropped)


def test_who_leads_no_more_tells_of_pods_only():
    played = Played()
    played.add("node", uid="n")
    played.add("pod", uid="p", kind="Pod", cause="x")
    played.backlog.forget_nodes()
    played.write(1)
    assert ["pod"] == played.sent
