"""Both ends of the feed over a real socket: what one publishes is what the other shows."""

import errno
import itertools
import socket
import threading
import time

import pytest
from msgspec.structs import replace

from extender.config.settings import parse
from extender.feed import wire
from extender.feed.client import LOOK_EVERY_S
from extender.feed.replica import Replica
from extender.feed.server import FOLLOWERS_MAX, FeedServer
from extender.policy.decision import CapState, Decision, GateState, Storm
from extender.policy.orders import Orders, parse_orders
from extender.policy.snapshot import Snapshot
from extender.process.services import Services
from extender.verbs.counts import RequestResult
from extender.verbs.source import Sync
from extender.why.entries import Named, Reset
from tests.extender.feed.published import SETTINGS, Published
from tests.extender.feed.test_wire import status
from tests.extender.why.attempting import Scheduler, gate
from tools.kit.waiting import wait_until

OPEN, CLOSED = Decision("", since_monotonic=1.0), Decision("closed", "ns/pod", "evidence", 2.0)


def decisions(mirror):
    return mirror.board.snapshot.gates.get("health", GateState("health")).decisions


def follows(mirror, published):
    wait_until(
        lambda: set(decisions(mirror)) == set(published.board.snapshot.gates["health"].decisions), "the snapshot"
    )


@pytest.mark.usefixtures("publisher")
def test_the_mirror_shows_what_is_published(published, mirror):
    published.decide({"n1": OPEN, "n2": CLOSED})
    follows(mirror, published)
    assert decisions(mirror)["n2"] == CLOSED
    assert mirror.board.look_up(["n1", "n2", "n3"]).survivors == ["n1"]
    published.decide({"n1": CLOSED, "n3": OPEN, "n2": None})
    wait_until(lambda: set(decisions(mirror)) == {"n1", "n3"}, "the change")
    assert mirror.board.snapshot.reasons == {"n1": "closed", "n3": ""}
    assert (mirror.sync(), mirror.why_not(), mirror.connected) == (Sync.OK, "", True)


def state(name, *, armed=True, storms=(), **reasons):
    """A gate whose nodes have these reasons."""
    decisions = {node: Decision(reason) for node, reason in reasons.items()}
    closed = {node: reason for node, reason in reasons.items() if reason}
    return GateState(name, decisions, closed, armed, "gate", CapState(2, len(closed), 1), storms)


@pytest.mark.usefixtures("publisher")
def test_all_gates_are_mirrored_and_answer_alike(published, mirror):
    storm = Storm("closed", "R", 3, "dns: no answer", 1.0, 9.0)
    states = [
        state("health", n1="closed", n2="", n3=""),
        state("cni", n1="", n2="closed", n3=""),
        state("shadow", n1="", n2="", n3="closed", armed=False, storms=(storm,)),
    ]
    published.board.swap(Snapshot({one.name: one for one in states}, frozenset({"n1", "n2", "n3"})))
    wait_until(lambda: mirror.board.filled, "the snapshot")
    assert states == list(mirror.board.snapshot.gates.values())
    for mask in range(8):
        answers = [board.look_up(["n1", "n2", "n3", "n4"], mask) for board in (published.board, mirror.board)]
        assert answers[0][:3] == answers[1][:3]


@pytest.mark.usefixtures("publisher")
def test_a_gate_that_is_armed_is_so_in_the_mirror_though_no_decision_has_changed(published, mirror):
    shadow = state("health", armed=False, n1="closed")
    published.board.swap(Snapshot({"health": shadow}, frozenset({"n1"})))
    wait_until(lambda: mirror.board.filled, "the snapshot")
    assert ["n1"] == mirror.board.look_up(["n1"]).survivors
    published.board.swap(Snapshot({"health": replace(shadow, armed=True)}, frozenset({"n1"})))
    wait_until(lambda: mirror.board.look_up(["n1"]).survivors == [], "the change")


@pytest.mark.usefixtures("publisher")
def test_orders_are_told_at_first_and_when_they_change(published, mirror):
    published.orders = parse_orders({"a": '{"order": "pause"}', "b": "rubbish"})
    wait_until(lambda: mirror.orders == published.orders, "the orders")
    assert ("a", 1) == (mirror.orders.entries[0].id, len(mirror.orders.faults))
    published.orders = Orders()
    wait_until(lambda: mirror.orders == Orders(), "their end")


def test_a_gate_that_the_next_process_does_not_have_is_forgotten(published, publisher, mirror, path):
    states = {name: state(name, n1="closed") for name in ("health", "cni")}
    published.board.swap(Snapshot(states, frozenset({"n1"})))
    wait_until(lambda: mirror.board.filled, "the snapshot")
    publisher.stop()
    again = Published()
    again.board.swap(Snapshot({"cni": states["cni"]}, frozenset({"n1"})))
    successor = FeedServer(path, again)
    successor.start()
    wait_until(lambda: list(mirror.board.snapshot.gates) == ["cni"], "the next snapshot")
    successor.stop()


@pytest.mark.usefixtures("publisher")
def test_thousands_of_nodes_come_as_one_snapshot(published, mirror):
    seen = set()
    swap = mirror.board.swap
    mirror.board.swap = lambda snapshot: (seen.add(len(snapshot.reasons)), swap(snapshot))[1]
    published.decide({f"n{number}": OPEN for number in range(5000)})
    follows(mirror, published)
    assert seen == {5000}


@pytest.mark.usefixtures("publisher")
def test_counts_and_heartbeats_come_too(published, mirror):
    published.beating = {"n1": 3.5}
    published.decide({"n1": OPEN})
    wait_until(lambda: mirror.beats() == {"n1": 3.5}, "the heartbeats")
    published.said.counts.count(RequestResult.EXEMPT)
    wait_until(lambda: mirror.status().counts.results["exempt"] == 1, "the counts")
    assert mirror.status().stuck == ["kick"]


@pytest.mark.usefixtures("publisher")
def test_before_the_first_snapshot_there_are_no_verdicts(published, mirror):
    published.said = status(sync="NOT_SYNCED")
    wait_until(lambda: mirror.connected, "the connection")
    assert (mirror.sync(), mirror.why_not()) == (Sync.NOT_SYNCED, Sync.NOT_SYNCED.value)


def test_while_nobody_publishes_the_mirror_says_so_and_keeps_what_it_knows(published, publisher, mirror, path):
    published.decide({"n1": OPEN})
    follows(mirror, published)
    publisher.stop()
    wait_until(lambda: not mirror.connected, "the end")
    assert str(path) in mirror.why_not()
    assert (mirror.sync(), set(decisions(mirror)), mirror.unhealthy()) == (Sync.OK, {"n1"}, [])


def test_it_follows_the_next_one_and_forgets_nodes_that_are_gone(published, publisher, mirror, path):
    published.decide({"n1": OPEN, "n2": OPEN})
    follows(mirror, published)
    publisher.stop()
    again = Published()
    again.decide({"n2": CLOSED})
    successor = FeedServer(path, again)
    successor.start()
    began = time.monotonic()
    wait_until(lambda: mirror.board.snapshot.reasons == {"n2": "closed"}, "the next snapshot")
    assert time.monotonic() - began < 1.5
    successor.stop()


@pytest.mark.parametrize(
    ("said", "later_s", "expected"),
    [
        pytest.param({"sync": "STALE"}, 0, Sync.STALE, id="the other process says so"),
        pytest.param({"required": ["pods"]}, 118, Sync.OK, id="the API server was heard within the limit"),
        pytest.param({"required": ["pods"]}, 119, Sync.STALE, id="and nobody has said anything since"),
        pytest.param({"sync": "NOT_SYNCED"}, 0, Sync.NOT_SYNCED, id="it has just begun again"),
    ],
)
def test_whether_verdicts_are_given(path, said, later_s, expected):
    mirror = Replica(path, SETTINGS, monotonic=lambda: 7.0 + later_s)
    mirror.board.swap(mirror.board.snapshot)
    mirror._take(wire.Said(status(**said)))
    assert mirror.sync() == expected


def test_one_who_does_not_read_holds_nobody_and_is_cut(published, publisher, mirror, path, monkeypatch):
    monkeypatch.setattr("extender.feed.server.STALLED_AFTER_S", 0.2)
    published.decide({f"n{number}": Decision("closed", "p" * 200, "e" * 200) for number in range(5000)})
    with socket.socket(socket.AF_UNIX) as stalled:
        stalled.connect(str(path))
        follows(mirror, published)
        published.decide({"n1": OPEN})
        wait_until(lambda: mirror.board.snapshot.reasons["n1"] == "", "the change")
        wait_until(lambda: len(publisher._followers) == 1, "the end of the one who does not read")


def test_no_more_than_a_few_may_follow_and_that_is_said_once(publisher, path, caplog):
    clients = [socket.socket(socket.AF_UNIX) for _ in range(FOLLOWERS_MAX + 1)]
    for client in clients:
        client.settimeout(5)
        client.connect(str(path))
        wait_until(lambda: len(publisher._followers) > 0)
    last = clients[-1]
    wait_until(lambda: len(publisher._followers) == FOLLOWERS_MAX, "those who may")
    assert last.recv(1) == b""
    for _ in range(3):  # it tries again and again
        with socket.socket(socket.AF_UNIX) as again:
            again.settimeout(5)
            again.connect(str(path))
            assert again.recv(1) == b""
    assert ["too many follow"] == [record.cause for record in caplog.records]
    for client in clients:
        client.close()
    wait_until(lambda: len(publisher._followers) == 0, "their ends")


def test_one_for_whom_there_is_no_descriptor_is_waited_with(published, path, monkeypatch):
    """He stays where he is, so without a pause the thread would turn for nothing, beside the one that answers."""
    publisher = FeedServer(path, published)
    publisher._claim(publisher._open())
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(str(path))
        with monkeypatch.context() as patch:
            patch.setattr(socket.socket, "accept", lambda _: (_ for _ in ()).throw(OSError(errno.EMFILE, "none left")))
            assert [LOOK_EVERY_S] * 2 == [publisher.turn(), publisher.turn()]
        assert (publisher.turn(), len(publisher._followers)) == (0.0, 1)
    publisher._close()


@pytest.mark.usefixtures("publisher")
def test_another_user_is_refused(path, monkeypatch):
    monkeypatch.setattr("extender.feed.server.trusted", lambda _: False)
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(str(path))
        assert client.recv(1) == b""


@pytest.mark.usefixtures("publisher")
def test_a_publisher_that_another_user_has_put_there_is_not_believed(path, monkeypatch):
    monkeypatch.setattr("extender.feed.replica.trusted", lambda _: False)
    mirror = Replica(path, SETTINGS)
    mirror.turn()
    assert "another user" in mirror.why_not()


def test_a_path_that_cannot_be_had_is_said_once_and_is_taken_when_it_can_be(published, path, caplog, monkeypatch):
    monkeypatch.setattr("extender.feed.server.CLAIM_EVERY_S", 0.01)
    path.parent.mkdir(mode=0o700)
    path.write_text("in the way")
    publisher = FeedServer(path, published)
    publisher.start()
    wait_until(lambda: "the feed's path cannot be used" in caplog.text, "the line")
    path.unlink()
    wait_until(lambda: path.is_socket(), "the socket")
    assert publisher.healthy(time.monotonic())
    publisher.stop()
    assert caplog.text.count("the feed's path cannot be used") == 1


@pytest.mark.usefixtures("publisher")
def test_a_path_that_somebody_removed_is_made_again(path, monkeypatch):
    monkeypatch.setattr("extender.feed.server.LOOK_AT_PLACE_EVERY_S", 0.01)
    with socket.socket(socket.AF_UNIX) as client:  # comes and goes, so that the next wait is a short one
        client.connect(str(path))
    path.unlink()
    wait_until(lambda: path.exists(), "the socket")


def test_a_feed_that_is_stuck_is_no_reason_to_restart_what_answers_kube_scheduler(path):
    services = Services(parse(f"feed: {{socket: {path}}}"), None)
    services.start()
    services.feed.stop()
    assert (services.feed.healthy(time.monotonic()), services.unhealthy()) == (False, [])
    services.stop()


def test_both_ends_stop_at_once_and_may_be_stopped_twice(publisher, mirror):
    wait_until(lambda: mirror.connected, "the connection")
    began = time.monotonic()
    for end in (publisher, mirror, publisher, mirror):
        end.stop()
    assert time.monotonic() - began < 1.0
    assert not {"feed", "replica"} & {thread.name for thread in threading.enumerate()}


def test_with_nobody_connected_nothing_is_done(published, publisher, monkeypatch):
    """The thread sleeps in one wait; what is decided meanwhile wakes nobody."""
    turns = []
    monkeypatch.setattr(publisher, "_step_all", lambda: turns.append(1))
    wait_until(lambda: turns, timeout_s=20)  # its own look, of which the next is seconds away
    turns.clear()
    for number in range(100):
        published.decide({"n1": CLOSED if number % 2 else OPEN})
    time.sleep(0.2)
    assert turns == []


# What is remembered


def remembered(mirror):
    with mirror.journal.reading() as memory:
        return memory.dump()


def same(mirror, published):
    wait_until(lambda: remembered(mirror) == published.journal.memory.dump() != [], "what is remembered")


@pytest.fixture
def asked(published):
    """kube-scheduler asks a published extender about a thousand pods."""
    scheduler = Scheduler(gate("health", ["n1", "n2"], ["n2"]))
    scheduler.journal.write(Reset(1.0))
    for number in range(1000):
        scheduler.asks(["n1", "n2"], pod=f"p{number}")
    published.journal = scheduler.journal
    published.decide({"n1": OPEN, "n2": CLOSED})
    return scheduler


@pytest.mark.usefixtures("publisher")
def test_what_is_remembered_comes_whole_and_then_what_comes_to_it(published, mirror, asked):
    same(mirror, published)
    asked.asks(["n2", "unknown"], pod="another")
    same(mirror, published)
    with mirror.journal.reading() as memory:
        assert (1001, ("unknown",)) == (len(memory.pods), memory.pods.get("team/another").unknown)


@pytest.mark.usefixtures("publisher")
def test_one_who_is_too_far_behind_is_told_all_anew(published, mirror, asked):
    asked.journal._steps_max = 10
    same(mirror, published)
    for number in range(50):
        asked.asks(["n2"], pod=f"many-{number}")
    asked.journal.renew(asked.memory.renumbered())
    asked.asks(["n1"], pod="later")
    same(mirror, published)


def test_one_who_comes_again_has_all_again_and_one_who_began_anew_has_forgotten(
    published, publisher, mirror, asked, path
):
    same(mirror, published)
    assert len(asked.memory.pods) == 1000
    again = Replica(path, SETTINGS)
    again.start()
    same(again, published)
    publisher.stop()
    wait_until(lambda: not mirror.connected, "the end")
    assert len(remembered(mirror)) > 1000
    successor = Published()
    successor.journal.write(Reset(9.0))
    successor.decide({"n1": OPEN})
    following = FeedServer(path, successor)
    following.start()
    for one in (mirror, again):
        same(one, successor)
    again.stop()
    following.stop()


@pytest.mark.usefixtures("publisher")
def test_decisions_come_although_what_is_remembered_never_ends(published, mirror, asked):
    asked.journal.dump = lambda: (-5, itertools.repeat(Reset(1.0)))
    follows(mirror, published)
    published.decide({"n3": OPEN})
    follows(mirror, published)
    wait_until(lambda: mirror.status() is not None)
    assert mirror.connected


def test_one_of_another_release_is_told_of_once_however_its_bytes_come(path, caplog):
    """Its settings may not be ours either, which shows where they have come with its first word."""
    path.parent.mkdir(mode=0o700)
    hello = wire.write(wire.Hello(wire.PROTOCOL + 1, 7))
    mirror = Replica(path, SETTINGS)
    with socket.socket(socket.AF_UNIX) as newer:
        newer.bind(str(path))
        newer.listen()
        for more in (b"", b"\x00\x00\x00\x01\xc1", b""):
            speaking = threading.Thread(target=lambda more=more: newer.accept()[0].sendall(hello + more))
            speaking.start()
            mirror.turn()
            speaking.join()
    assert (1, True) == (len(caplog.records), "another release" in mirror.why_not())


def test_entries_that_do_not_follow_end_the_connection_in_one_line(path):
    mirror = Replica(path, SETTINGS)
    with pytest.raises(wire.FeedError, match="does not follow"):
        mirror._take(wire.Remembered([Reset(1.0), Named(7, ["n"])]))
