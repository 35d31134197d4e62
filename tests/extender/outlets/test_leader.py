"""The thread that holds the Lease, with a client that answers as a test says and a clock of the test's."""

import json

import pytest

from extender.outlets.leader import Leader
from kube.errors import AlreadyExists, Conflict, Forbidden, NotFound, TooManyRequests, Unreachable
from tools.kit.clock import Clock
from tools.kit.waiting import wait_until

PATH = "/apis/coordination.k8s.io/v1/namespaces/readygate-system/leases/readygate-extender"
FOREIGN = {"labels": {"team": "x"}, "annotations": {"a": "b"}}


class Server:
    """One Lease, as the API server keeps it. failures: what the next requests raise."""

    def __init__(self):
        self.lease = None
        self.version = 0
        self.failures = []
        self.asked = []
        self.path = PATH

    def client(self):
        return Client(self)

    @property
    def holder(self):
        return self.lease["spec"]["holderIdentity"]


class Client:
    def __init__(self, server):
        self.server = server
        self.closed = False

    def _ask(self, method, path, deadline_s):
        assert (self.server.path.startswith(path), deadline_s <= 5) == (True, True)
        self.server.asked.append(method)
        if self.server.failures:
            raise self.server.failures.pop(0)

    def get(self, path, *, deadline_s):
        self._ask("GET", path, deadline_s)
        if self.server.lease is None:
            raise NotFound(path=path, status=404)
        return json.dumps(self.server.lease).encode()

    def create(self, path, body, *, deadline_s):
        self._ask("POST", path, deadline_s)
        if self.server.lease is not None:
            raise AlreadyExists(path=path, status=409)
        return self._write(json.loads(body))

    def replace(self, path, body, *, deadline_s):
        self._ask("PUT", path, deadline_s)
        value = json.loads(body)
        if self.server.lease is None:
            raise NotFound(path=path, status=404)
        if value["metadata"]["resourceVersion"] != self.server.lease["metadata"]["resourceVersion"]:
            raise Conflict(path=path, status=409)
        return self._write(value)

    def _write(self, value):
        self.server.version += 1
        value["metadata"]["resourceVersion"] = str(self.server.version)
        self.server.lease = value
        return json.dumps(value).encode()

    def close(self):
        self.closed = True


class Replica:
    def __init__(self, name, server, clock, wall=1_800_000_000.0):
        self.client, self.last = server.client(), server.client()
        self.set_s = wall
        self.clock = clock
        self.leader = Leader(
            self.client,
            self.last,
            monotonic=clock,
            wall=lambda: self.set_s + clock.time,
            random=lambda: 0.0,
            identity=lambda: name,
        )
        self.due_at = clock.time

    def turn(self):
        self.due_at = self.clock.time + self.leader.turn()


@pytest.fixture
def clock():
    return Clock(1000.0)


def play(clock, replicas, seconds):
    end = clock.time + seconds
    while (replica := min(replicas, key=lambda r: r.due_at)).due_at <= end:
        clock.time = max(clock.time, replica.due_at)
        replica.turn()
    clock.time = end


def leaders(*replicas):
    return [replica.leader.leads() for replica in replicas]


def test_the_first_makes_the_lease_and_leads_and_the_second_does_not(clock):
    server = Server()
    a, b = Replica("a", server, clock), Replica("b", server, clock)
    play(clock, [a, b], 60)
    assert ([True, False], "a") == (leaders(a, b), server.holder)
    assert ("readygate-extender", "readygate-system") == (
        server.lease["metadata"]["name"],
        server.lease["metadata"]["namespace"],
    )


def test_a_leader_that_is_killed_is_followed_by_another_one_within_the_duration_and_a_look(clock):
    server = Server()
    a, b = Replica("a", server, clock), Replica("b", server, clock)
    play(clock, [a, b], 60)
    play(clock, [b], 15 + 2)
    assert ("b", 1, [True]) == (server.holder, server.lease["spec"]["leaseTransitions"], leaders(b))


def test_a_leader_that_stops_is_followed_at_the_next_look(clock):
    server = Server()
    a, b = Replica("a", server, clock), Replica("b", server, clock)
    play(clock, [a, b], 60)
    a.leader.release()
    assert ([False, False], "", True) == (leaders(a, b), server.holder, a.last.closed)
    play(clock, [b], 2)
    assert [False, True] == leaders(a, b)


@pytest.mark.parametrize("wall", [pytest.param(0.0, id="in 1970"), pytest.param(4_000_000_000.0, id="in 2096")])
def test_what_a_replicas_wall_clock_says_plays_no_part(clock, wall):
    server = Server()
    a, b = Replica("a", server, clock), Replica("b", server, clock, wall=wall)
    play(clock, [a, b], 60)
    assert [True, False] == leaders(a, b)
    a.set_s -= 86400
    play(clock, [a, b], 60)
    assert [True, False] == leaders(a, b)


def test_one_that_was_stopped_for_a_minute_does_not_lead_when_it_goes_on_and_learns_who_does(clock):
    server = Server()
    a, b = Replica("a", server, clock), Replica("b", server, clock)
    play(clock, [a, b], 60)
    play(clock, [b], 60)
    assert [False, True] == leaders(a, b)
    play(clock, [a, b], 60)
    assert ([False, True], "b") == (leaders(a, b), server.holder)


def test_while_the_server_is_away_nobody_leads_and_it_is_asked_less_and_less(clock):
    server = Server()
    a, b = Replica("a", server, clock), Replica("b", server, clock)
    play(clock, [a, b], 60)
    server.failures = [Unreachable(path=PATH) for _ in range(1000)]
    server.asked.clear()
    play(clock, [a, b], 600)
    assert ([False, False], True) == (leaders(a, b), len(server.asked) < 100)
    server.failures.clear()
    play(clock, [a, b], 32)
    assert 1 == sum(leaders(a, b))


def test_one_lost_renewal_costs_nothing(clock):
    server = Server()
    a = Replica("a", server, clock)
    play(clock, [a], 60)
    server.failures = [TooManyRequests(path=PATH, status=429)]
    for _ in range(20):
        play(clock, [a], 1)
        assert [True] == leaders(a)


def test_a_server_that_takes_no_write_for_a_conflict_is_not_asked_without_a_pause(clock):
    """As where a webhook answers so: what is read anew changes nothing."""
    server = Server()
    a = Replica("a", server, clock)
    play(clock, [a], 60)

    def refuse(path, _body, **_options):
        clock.time += 0.005
        server.asked.append("PUT")
        raise Conflict(path=path, status=409)

    a.client.replace = refuse
    server.asked.clear()
    play(clock, [a], 60)
    assert ([False], True) == (leaders(a), server.asked.count("PUT") <= 60 / 2 + 1)


def test_what_others_wrote_into_the_lease_stays(clock):
    server = Server()
    a = Replica("a", server, clock)
    play(clock, [a], 1)
    server.lease["metadata"] |= {**FOREIGN, "resourceVersion": "77"}
    play(clock, [a], 60)
    assert FOREIGN == {key: server.lease["metadata"][key] for key in FOREIGN}


def test_a_lease_that_somebody_deletes_is_made_anew(clock):
    server = Server()
    a = Replica("a", server, clock)
    play(clock, [a], 60)
    server.lease = None
    play(clock, [a], 20)
    assert [True] == leaders(a)


def test_a_lease_that_is_rubbish_is_reported_and_not_led_by(clock, caplog):
    server = Server()
    server.lease = {"metadata": {"resourceVersion": "1"}, "spec": {"holderIdentity": 5}}
    a = Replica("a", server, clock)
    play(clock, [a], 60)
    assert ([False], ["lease of the leader not to be had"]) == (leaders(a), [r.message for r in caplog.records])


def test_without_the_right_it_is_asked_once_a_minute_and_said_once_in_ten_with_the_remedy(clock, caplog):
    server = Server()
    a = Replica("a", server, clock)
    server.failures = [Forbidden(path=PATH, status=403, message="no") for _ in range(1000)]
    play(clock, [a], 595)
    (record,) = caplog.records
    assert (10, "WARNING", True) == (len(server.asked), record.levelname, "get, create and update" in record.error)
    assert {"renewed": 0, "Forbidden": 10} == a.leader.counters


def test_who_does_not_lead_writes_nothing_at_its_end(clock):
    server = Server()
    a, b = Replica("a", server, clock), Replica("b", server, clock)
    play(clock, [a, b], 60)
    server.asked.clear()
    b.leader.release()
    assert ([], "a") == (server.asked, server.holder)


def test_the_identity_is_made_in_the_thread_and_never_the_same_twice(clock):
    server = Server()
    one, two = (Leader(server.client(), server.client(), monotonic=clock) for _ in range(2))
    one.turn()
    holder = server.holder
    server.lease = None
    two.turn()
    assert holder != server.holder
    assert holder.split("_")[0] == server.holder.split("_")[0]


def test_in_another_namespace_the_lease_is_there(clock):
    server = Server()
    server.path = "/apis/coordination.k8s.io/v1/namespaces/gates-of-ours/leases/readygate-extender"
    leader = Leader(server.client(), server.client(), monotonic=clock, namespace="gates-of-ours")
    leader.turn()
    assert ("gates-of-ours", True) == (server.lease["metadata"]["namespace"], leader.leads())


def test_as_a_service_it_releases_when_it_is_stopped():
    server = Server()
    leader = Leader(server.client(), server.client())
    assert not leader.healthy(0.0)
    leader.start()
    wait_until(leader.leads)
    leader.stop()
    leader.stop()
    assert (False, "") == (leader.leads(), server.holder)
