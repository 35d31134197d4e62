"""The writer of the Nodes' condition while it is refused, has no server, or the wall clock steps."""

import pytest

from kube.errors import Conflict, Forbidden, TooManyRequests, Unreachable
from tests.extender.outlets.condition_world import Cluster, Played, all_open
from tests.extender.outlets.gate_states import closed, gate, opened


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(Unreachable(path="/"), id="unreachable"),
        pytest.param(TooManyRequests(path="/", status=429, retry_after_s=1.0), id="too many requests"),
    ],
)
def test_while_the_server_fails_little_is_tried_and_then_the_newest_is_written_once(failure, caplog):
    cluster = Cluster("a")
    played = Played(cluster, all_open("a"))
    cluster.failures = [failure] * 1000
    for second in range(300):
        played.show(gate("health", a=opened() if second % 2 else closed("missing")))
        played.pass_s(1)
    assert (20 > len(cluster.sent), None) == (True, cluster.condition("a"))
    assert ["condition of a node not written"] == [record.message for record in caplog.records]
    cluster.failures.clear()
    cluster.sent.clear()
    played.pass_s(45)
    assert (["a"], "True") == (cluster.sent, cluster.condition("a")["status"])


def forbidden(count):
    return [Forbidden(path="/api/v1/nodes/n/status", status=403, message="no") for _ in range(count)]


def test_without_the_right_three_nodes_are_tried_in_five_minutes_and_the_remedy_is_said_once_in_ten(caplog):
    cluster = Cluster(*(f"n{i}" for i in range(1000)))
    played = Played(cluster, all_open(*cluster.nodes))
    cluster.failures = forbidden(10_000)
    played.pass_s(599)
    (record,) = caplog.records
    assert (6, "WARNING", True) == (len(cluster.sent), record.levelname, "patch on nodes/status" in record.error)


def test_a_policy_that_denies_one_node_keeps_no_other_from_its_condition():
    cluster = Cluster("a", "b", "c")
    played = Played(cluster, all_open("a", "b", "c"))
    cluster.failures = forbidden(1)
    played.pass_s(10)
    assert {"a": None, "b": "True", "c": "True"} == cluster.statuses()
    played.pass_s(300)
    assert "True" == cluster.condition("a")["status"]


def test_a_conflict_is_no_fault_of_the_others():
    cluster = Cluster("a", "b")
    played = Played(cluster, all_open("a", "b"))
    cluster.failures = [Conflict(path="/", status=409)]
    played.pass_s(10)
    assert {"a": None, "b": "True"} == cluster.statuses()


def test_an_answer_that_is_no_node_is_tried_again():
    cluster = Cluster("a")
    played = Played(cluster, all_open("a"))
    patch, cluster.patch = cluster.patch, lambda *_, **__: b"<html>"
    played.pass_s(3)
    cluster.patch = patch
    played.pass_s(40)
    assert "True" == cluster.condition("a")["status"]


@pytest.mark.parametrize("step_s", [pytest.param(-86400, id="back a day"), pytest.param(86400, id="on a day")])
def test_a_wall_clock_that_steps_makes_no_storm_and_no_silence(step_s):
    cluster = Cluster(*(f"n{i}" for i in range(10)))
    played = Played(cluster, all_open(*cluster.nodes))
    played.pass_s(60)
    cluster.sent.clear()
    played.wall_step = step_s
    played.pass_s(1200)
    assert 10 * 3 <= len(cluster.sent) <= 10 * 6
