"""Answers of the application without a server or a network: caches and clock are fakes, the rest is real."""

import json
import threading

import pytest

from extender.config.settings import parse
from extender.policy.exempt import Exemption
from extender.policy.reasons import CLOSED_NO_HEALTH_POD, CLOSED_NOT_READY, OPEN
from extender.policy.snapshot import INHERITED_KICKS
from extender.process.services import Services
from extender.verbs.filter import answer_filter
from extender.verbs.source import Sync
from extender.web.app import create_app
from tests.contract.go_types import read_filter_result
from tests.extender.builders import AGENT_LABELS, node, owner, pod
from tests.extender.world import PODS
from tools.kit.brakes import OFF_YAML
from tools.kit.clock import Clock
from tools.kit.waiting import wait_until


class FakeCache:
    synced = True
    lag_s = 0.25

    def __init__(self, name):
        self.name = name
        self.counters = {"relists": 3}
        self.age = 0.0
        self.alive = True

    def age_s(self, _now):
        return self.age

    def healthy(self, _now):
        return self.alive

    def start(self):
        self.alive = True

    def stop(self):
        self.alive = False


class World:
    def __init__(self, config=""):
        self.clock = Clock(1000.0)
        self.services = Services(parse(OFF_YAML + config), None, monotonic=self.clock)
        self.caches = {name: FakeCache(name) for name in ("pods", "nodes", "leases")}
        self.services.watch_with(self.caches, required=("pods", "nodes"))
        self.client = create_app(self.services).test_client()

    def see(self, *pods):
        """Health pods come in; the decider's thread is not started, its turn is taken here."""
        for one in pods:
            self.services.index.upsert_pod(PODS, one)
        self.services.decider.turn()

    def filter(self, names=None, *, pod=None):
        body = {"Pod": {"metadata": {"name": "p", "namespace": "default"}} if pod is None else pod}
        response = self.client.post("/filter", json=body | {"Nodes": None, "NodeNames": names})
        assert response.status_code == 200
        return read_filter_result(response.data)


@pytest.fixture
def unsynced():
    return World()


@pytest.fixture
def world(unsynced):
    world = unsynced
    world.services.index.replace_nodes([node(name) for name in ("h1", "h2", "u1", "m1")])
    world.services.index.replace_pods(PODS, [pod("h1"), pod("h2"), pod("u1", Ready="False")])
    world.see()
    return world


@pytest.fixture
def running(world):
    """As `world`; its threads run, so the decider takes its turns in its own."""
    world.services.start()
    yield world
    world.services.stop()


def test_survivors_and_reasons(world):
    result = world.filter(["h2", "u1", "x1", "h1", "m1"])
    assert result.NodeNames == ["h2", "h1"]
    assert (result.FailedAndUnresolvableNodes) == {
        "u1": CLOSED_NOT_READY,
        "x1": CLOSED_NO_HEALTH_POD,
        "m1": CLOSED_NO_HEALTH_POD,
    }


@pytest.mark.parametrize(
    ("age", "error"),
    [
        pytest.param(70.0, "", id="bookmarks come once a minute"),
        pytest.param(120.1, Sync.STALE.value, id="beyond the limit"),
    ],
)
@pytest.mark.parametrize("cache", ["pods", "nodes"])
def test_x22_a_stale_cache(running, cache, age, error):
    world = running
    world.caches[cache].age = age
    assert error == world.filter(["h1"]).Error
    assert (503 if error else 200) == world.client.get("/readyz").status_code
    assert world.client.get("/livez").status_code == 200


@pytest.mark.parametrize(
    ("heard_s", "expected"),
    [
        pytest.param([], [0.0, 120.0], id="nothing more is heard"),
        pytest.param([100.0], [0.0, 120.0], id="one cache hears more, the other does not"),
        pytest.param([100.0, 110.0], [0.0, 220.0], id="both do"),
        pytest.param([130.0, 140.0], [0.0, 120.0, 140.0, 250.0], id="both do when it is too late"),
    ],
)
def test_x22_a_word_counts_to_the_very_end_of_its_time(world, heard_s, expected):
    """expected: when calls begin to be answered, stop, and begin again, asked each second."""
    start = world.clock()
    last = dict.fromkeys(world.caches, start)
    for name, cache in world.caches.items():
        cache.age_s = lambda now, name=name: now - last[name]
    coming = dict(zip(heard_s, ("pods", "nodes"), strict=False))
    seen, turns = None, []
    for second in range(300):
        world.clock.time = start + second
        if second in coming:
            last[coming[second]] = world.clock()
        if (answered := world.services.sync() is Sync.OK) is not seen:
            seen = answered
            turns.append(second if answered else second - 1.0)
    assert expected == turns


def test_leases_that_are_stale_stop_nothing(world):
    world.caches["leases"].age = float("inf")
    assert world.filter(["h1"]).NodeNames == ["h1"]
    assert world.client.get("/readyz").json["caches"]["leases"]["ageSeconds"] is None


def test_a_lag_is_shown_where_it_is_known(world):
    world.caches["leases"].lag_s, world.caches["pods"].lag_s = 10.13, None
    shown = world.client.get("/readyz").json["caches"]
    assert (shown["leases"]["lagSeconds"], "lagSeconds" in shown["pods"]) == (10.13, False)


def test_x21_not_synced(unsynced):
    assert unsynced.filter(["h1"]).Error == Sync.NOT_SYNCED.value
    unsynced.services.start()
    assert (unsynced.client.get("/readyz").status_code, unsynced.client.get("/livez").status_code) == (503, 200)
    unsynced.services.stop()


@pytest.mark.parametrize(
    "exempt_pod",
    [
        {"metadata": {"namespace": "readygate-system", "labels": AGENT_LABELS, "ownerReferences": [owner()]}},
        {"metadata": {"namespace": "kube-system"}},
        {"metadata": {"namespace": "default"}, "spec": {"priorityClassName": "system-node-critical"}},
    ],
    ids=["a health pod", "kube-system", "system-critical"],
)
def test_x20_an_exempt_pod_passes_though_not_synced(unsynced, exempt_pod):
    result = unsynced.filter(["u1", "x1"], pod=exempt_pod)
    assert (result.NodeNames, result.FailedAndUnresolvableNodes) == (["u1", "x1"], {})


@pytest.mark.parametrize("names", [[""], ["h1", ""], ["u1", ""]])
@pytest.mark.parametrize("namespace", ["default", "kube-system"])
def test_x28_an_empty_name_is_never_echoed(world, names, namespace):
    result = world.filter(names, pod={"metadata": {"namespace": namespace}})
    assert (result.NodeNames, bool(result.Error)) == (None, True)


@pytest.fixture
def kicked(world, monkeypatch):
    for _ in range(INHERITED_KICKS):  # those of the start
        world.services.board.after_kick()
    kicked = []
    monkeypatch.setattr(world.services.decider, "_on_release", kicked.extend)
    return kicked


def test_a_refusal_is_remembered_and_its_release_is_kicked(world, kicked):
    world.filter(["h1", "u1"])
    world.see(pod("u1"))
    assert kicked == ["u1"]


def test_an_exempt_pod_refuses_nothing(world, kicked):
    world.filter(["u1"], pod={"metadata": {"namespace": "kube-system"}})
    world.see(pod("u1"))
    assert kicked == []


def test_a_reply_tells_why_its_pod_is_exempt(world):
    bodies = {
        namespace: json.dumps({"Pod": {"metadata": {"namespace": namespace}}, "NodeNames": ["u1"]}).encode()
        for namespace in ("kube-system", "readygate-system", "default")
    }
    assert [Exemption.NAMESPACE, Exemption.READYGATE, Exemption.NONE] == [
        answer_filter(world.services, body).exemption for body in bodies.values()
    ]


def test_livez_names_what_is_stuck(world):
    world.caches["pods"].alive = False
    response = world.client.get("/livez")
    assert (response.status_code, "pods" in response.json["stuck"]) == (503, True)


def test_x58_metrics_have_no_series_per_node_or_pod(world):
    world.filter(["h1", "u1", "x1"])
    world.client.post("/filter", data=b"[")
    text = world.client.get("/metrics").text
    assert 'readygate_requests_total{result="answered",verb="filter"} 1.0' in text
    assert 'readygate_requests_total{result="malformed",verb="filter"} 1.0' in text
    assert f'readygate_refused_nodes_total{{reason="{CLOSED_NOT_READY}"}} 1.0' in text
    assert 'readygate_nodes{verdict="open"} 2.0' in text
    assert 'readygate_cache_events_total{cache="pods",event="relists"} 3.0' in text
    assert 'readygate_cache_lag_seconds{cache="pods"} 0.25' in text
    assert not [line for line in text.splitlines() if "u1" in line or "agent-" in line]


def test_the_nodes_with_their_evidence(world):
    world.clock.time += 5
    world.see(pod("h1", Ready="False", NodeHealthy="False"))
    world.clock.time += 2
    answer = world.client.get("/api/v1/nodes").json
    (decided,) = answer["nodes"][0].pop("gates")
    assert ("health", True, False, "") == tuple(decided[name] for name in ("gate", "armed", "open", "heldBy"))
    assert answer["nodes"][0] == {
        "node": "h1",
        "open": False,
        "reason": "node(s) reported unhealthy",
        "sinceSeconds": 2.0,
        "pod": "readygate-system/agent-h1",
        "evidence": "R: m",
        "heartbeatAgeSeconds": None,
    }
    assert [entry["sinceSeconds"] for entry in answer["nodes"]] == [2.0, 7.0, 7.0, 7.0]


def test_a_fault_of_ours_is_one_fixed_sentence(world, monkeypatch):
    monkeypatch.setattr(world.services, "sync", lambda: 1 / 0)
    response = world.client.get("/readyz")
    assert (response.status_code, json.loads(response.data)) == (500, {"Error": "internal error"})


def test_stop_may_be_called_without_start_and_twice():
    services = Services(parse(""), None)
    services.stop()
    services.start()
    services.stop()
    services.stop()
    assert "decider" not in {thread.name for thread in threading.enumerate()}


def test_the_thread_that_decides_is_woken_by_what_is_seen(running):
    running.services.index.upsert_pod(PODS, pod("u1"))
    wait_until(lambda: running.services.board.snapshot.reasons["u1"] == OPEN, "the decision")
    assert running.client.get("/livez").status_code == 200


def test_while_decisions_fail_the_last_ones_hold_and_the_failure_is_logged_once(running, monkeypatch, caplog):
    running.services.decider._loop.error_pause_s = 0.01
    failures = []

    def fails(*_, **__):
        failures.append(1)
        raise RuntimeError("a bug of ours")

    with monkeypatch.context() as broken:
        broken.setattr("extender.cluster.decider.decide", fails)
        running.services.index.upsert_pod(PODS, pod("u1"))
        wait_until(lambda: len(failures) > 3, "decisions that fail")
        assert running.filter(["u1", "h1"]).NodeNames == ["h1"]
        assert running.client.get("/livez").status_code == 200
        assert [record.message for record in caplog.records].count("turn failed") == 1
    wait_until(lambda: running.services.board.snapshot.reasons["u1"] == OPEN, "the decision that failed")


def test_livez_tells_of_a_decider_that_has_ended(running):
    running.services.stop()
    assert "decider" in running.client.get("/livez").json["stuck"]


def test_a_store_that_is_filled_while_all_stops_harms_nothing(running):
    services = running.services
    stop = threading.Thread(target=services.stop)
    stop.start()
    for step in range(1000):
        services.index.upsert_pod(PODS, pod("u1", Ready="True" if step % 2 else "False"))
    stop.join(5.0)
    services.index.replace_nodes([])
    assert not stop.is_alive()


def test_the_wait_for_the_first_sync_ends_when_it_is_given_up(unsynced):
    assert not unsynced.services.wait_synced(60, give_up=lambda: True)
