"""The thread that writes the Nodes' condition: its turns, with a clock and an API server of the test's."""

import threading
import time

from extender.outlets.condition import Conditions
from kube.errors import Unreachable
from kube.times import format_time
from tests.extender.builders import node_json
from tests.extender.outlets.condition_world import FOREIGN, TYPE, Cluster, Played, all_open
from tests.extender.outlets.gate_states import closed, gate, gates, opened
from tools.kit.waiting import wait_until


def test_a_condition_is_written_to_each_node_with_what_belongs_to_it_and_nothing_else_is_touched():
    cluster = Cluster("a", "b", "c")
    played = Played(cluster, gate("health", a=opened(), b=closed("not ready", "dns")))
    played.pass_s(2)
    assert {"a": "True", "b": "False", "c": None} == cluster.statuses()
    assert {
        "type": TYPE,
        "status": "False",
        "reason": "HealthPodNotReady",
        "message": "closed: gate health: with a health pod that is not Ready: dns",
        "lastTransitionTime": "2026-11-22T00:00:00Z",
        "lastHeartbeatTime": "2026-11-22T00:00:00Z",
    } == cluster.condition("b")
    assert FOREIGN == next(c for c in cluster.nodes["b"]["status"]["conditions"] if c["type"] == "Ready")


def test_while_nothing_changes_each_is_said_again_once_in_five_minutes():
    cluster = Cluster("a", "b")
    played = Played(cluster, all_open("a", "b"))
    played.pass_s(2)
    played.pass_s(3000)
    assert (2 + 2 * 10, "2026-11-22T00:00:00Z") == (len(cluster.sent), cluster.condition("a")["lastTransitionTime"])
    assert "2026-11-22T00:50:00Z" == cluster.condition("a")["lastHeartbeatTime"]


def test_without_a_refresh_nothing_is_said_again():
    cluster = Cluster("a")
    played = Played(cluster, all_open("a"), refresh_s=float("inf"))
    played.pass_s(100_000)
    assert ["a"] == cluster.sent


def test_a_change_is_written_within_a_second_or_so_and_the_time_of_it_is_told():
    cluster = Cluster("a")
    played = Played(cluster, all_open("a"))
    played.pass_s(100)
    played.show(gate("health", a=closed("lost")))
    played.pass_s(1)
    assert ("Unknown", "2026-11-22T00:01:41Z") == (
        cluster.condition("a")["status"],
        cluster.condition("a")["lastTransitionTime"],
    )


def test_evidence_that_changes_all_the_time_is_a_write_a_minute():
    cluster = Cluster("a")
    played = Played(cluster, all_open("a"))
    for second in range(580):
        played.show(gate("health", a=closed("unhealthy", f"tried {second} times")))
        played.pass_s(1)
    assert 12 >= len(cluster.sent)
    assert "closed: gate health: reported unhealthy: tried 579 times" != cluster.condition("a")["message"]
    played.pass_s(61)
    assert "closed: gate health: reported unhealthy: tried 579 times" == cluster.condition("a")["message"]


def test_what_an_earlier_leader_wrote_is_not_written_again_while_it_is_true_and_fresh():
    cluster = Cluster(*(f"n{i}" for i in range(500)))
    names = [*cluster.nodes]
    Played(cluster, all_open(*names)).pass_s(60)
    cluster.sent.clear()
    after = Played(cluster, gate("health", **{name: opened() for name in names} | {"n7": closed("missing")}))
    after.pass_s(60)
    assert ["n7"] == cluster.sent


def test_who_does_not_lead_writes_nothing_and_asks_for_it_before_each_write():
    cluster = Cluster(*(f"n{i}" for i in range(500)))
    played = Played(cluster, all_open(*cluster.nodes))
    played.leads = False
    played.pass_s(60)
    assert [] == cluster.sent
    played.leads = True
    played.pass_s(5)
    played.leads = False
    sent = len(cluster.sent)
    played.pass_s(600)
    assert (True, sent) == (0 < sent < 200, len(cluster.sent))


def test_while_verdicts_are_not_to_be_given_nothing_is_written():
    cluster = Cluster("a")
    played = Played(cluster, all_open("a"))
    played.states = None
    played.pass_s(600)
    assert [] == cluster.sent


def test_a_hundred_nodes_that_change_at_once_are_a_hundred_writes_rationed():
    cluster = Cluster(*(f"n{i}" for i in range(100)))
    played = Played(cluster, all_open(*cluster.nodes), refresh_s=float("inf"))
    played.pass_s(60)
    cluster.sent.clear()
    played.show(gate("health", **{name: closed("unhealthy") for name in cluster.nodes}))
    played.pass_s(2)
    assert 61 >= len(cluster.sent)
    played.pass_s(60)
    assert ([*cluster.nodes], {"False"}) == (cluster.sent, {*cluster.statuses().values()})


def test_a_watch_that_is_behind_makes_no_second_write_and_one_that_shows_another_thing_a_correction():
    cluster = Cluster("a")
    played = Played(cluster, all_open("a"))
    cluster.held = True
    played.pass_s(9)
    assert ["a"] == cluster.sent
    played.pass_s(3)  # by now the watch would have shown it: somebody has taken it away
    assert ["a", "a"] == cluster.sent


def test_what_somebody_else_makes_of_our_condition_is_put_right():
    cluster = Cluster("a")
    played = Played(cluster, all_open("a"))
    played.pass_s(60)
    cluster.condition("a")["status"] = "False"
    cluster.watch("a")
    played.pass_s(1)
    assert "True" == cluster.condition("a")["status"]
    played.pass_s(60)
    cluster.nodes["a"]["status"]["conditions"].remove(cluster.condition("a"))
    cluster.watch("a")
    played.pass_s(1)
    assert "True" == cluster.condition("a")["status"]


def test_a_node_that_is_made_anew_gets_its_own():
    cluster = Cluster("a")
    played = Played(cluster, all_open("a"))
    played.pass_s(2)
    cluster.add("a", uid="another")
    played.pass_s(1)
    assert ("True", ["a", "a"]) == (cluster.condition("a")["status"], cluster.sent)


def test_a_node_that_was_made_anew_before_the_watch_shows_it_is_not_written_to():
    cluster = Cluster("a")
    played = Played(cluster, all_open("a"))
    cluster.nodes["a"] = node_json("a", uid="another", Ready="True")
    played.pass_s(30)
    assert (None, ["a"]) == (cluster.condition("a"), cluster.sent)
    cluster.watch("a")
    played.pass_s(1)
    assert "True" == cluster.condition("a")["status"]


def test_a_node_that_is_deleted_before_the_watch_shows_it_is_tried_once():
    cluster = Cluster("a", "b")
    played = Played(cluster, all_open("a", "b"))
    del cluster.nodes["a"]
    played.pass_s(120)
    assert (["a", "b"], {"written": 1, "gone": 1}) == (cluster.sent, played.writer.counters)
    cluster.watch("a")
    played.show(all_open("b"))
    played.pass_s(1000)
    assert 1 == cluster.sent.count("a")


def test_a_node_no_gate_speaks_for_any_more_loses_it():
    cluster = Cluster("a", "b")
    played = Played(cluster, all_open("a", "b"))
    played.pass_s(2)
    played.show(all_open("a"))
    played.pass_s(2)
    assert ({"a": "True", "b": None}, [FOREIGN]) == (cluster.statuses(), cluster.nodes["b"]["status"]["conditions"])
    played.show()
    played.pass_s(2)
    assert {"a": None, "b": None} == cluster.statuses()


def test_a_gate_that_is_armed_is_told_of_all_its_nodes_although_no_decision_is_another():
    cluster = Cluster("a")
    decision = closed("missing")
    played = Played(cluster, gate("health", armed=False, a=decision))
    played.pass_s(2)
    assert ("True", "WouldBeClosed") == (cluster.condition("a")["status"], cluster.condition("a")["reason"])
    played.show(gate("health", a=decision))
    played.pass_s(2)
    assert "False" == cluster.condition("a")["status"]


# What is told to those who write Events.


def test_a_change_is_told_once_when_it_is_seen_and_not_when_a_text_changes():
    cluster = Cluster("a", "b")
    played = Played(cluster, all_open("a", "b"))
    played.pass_s(10)
    assert [] == played.told
    for evidence in ("one", "two"):
        played.show(gate("health", a=closed("missing", evidence), b=opened()))
        played.pass_s(100)
    played.show(all_open("a", "b"))
    played.pass_s(100)
    assert [("a", "uid-a", "False", "NoHealthPod"), ("a", "uid-a", "True", "Healthy")] == played.told


def test_a_new_leader_tells_what_changed_meanwhile_and_nothing_else():
    cluster = Cluster("a", "b")
    Played(cluster, gate("health", a=closed("missing"), b=opened())).pass_s(10)
    after = Played(cluster, gate("health", a=closed("missing"), b=closed("unhealthy")))
    after.pass_s(10)
    assert [("b", "uid-b", "False", "Unhealthy")] == after.told


def test_where_no_condition_is_written_changes_are_told_all_the_same():
    cluster = Cluster("a")
    played = Played(cluster, gate("health", a=closed("missing")), write=False)
    played.pass_s(10)
    played.show(all_open("a"))
    played.pass_s(10)
    assert ([("a", "uid-a", "True", "Healthy")], []) == (played.told, cluster.sent)


# As a thread.


class Hangs(Cluster):
    """A server that answers when it is let."""

    def __init__(self, *names):
        super().__init__(*names)
        self.answer, self.closed = threading.Event(), False

    def patch(self, path, *_, **__):
        self.sent.append(path)
        self.answer.wait(5)
        raise Unreachable(path=path, reason="Closed")

    def close(self):
        self.closed = True
        self.answer.set()


def test_a_stop_ends_a_write_that_hangs_and_logs_nothing(caplog):
    cluster = Hangs("a")
    writer = Conditions(
        cluster,
        cluster.marks,
        gates=lambda: gates(all_open("a")),
        leads=lambda: True,
        refresh_s=300.0,
        per_second=20.0,
    )
    assert not writer.healthy(time.monotonic())
    writer.start()
    wait_until(lambda: cluster.sent)
    assert writer.healthy(time.monotonic() + 100_000)
    began = time.monotonic()
    writer.stop()
    writer.stop()
    assert (True, True, []) == (cluster.closed, time.monotonic() - began < 4, caplog.records)


def test_the_heartbeat_is_written_as_the_api_writes_times():
    assert "2026-11-22T00:00:00Z" == format_time(1795305600.9)
