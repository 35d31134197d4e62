"""When the agent's own Lease is written, by whose right, and what a server that is away or knows it already changes."""

import json

import pytest

from agent.report.heartbeat import Heartbeat, Writer
from kube import errors
from tools.kit.clock import Clock

LEASES = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
DOWN = errors.Unreachable(path=LEASES, message="connection refused")
OWNER = [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "node-uid"}]


class Scene:
    """An API server with the Leases of one namespace, and a heartbeat of 3 s whose random numbers are all 0.5."""

    def __init__(self, random: float = 0.5) -> None:
        self.clock = Clock(1_700_000_000.0)
        self.leases: dict[str, dict[str, dict[str, object]]] = {}
        self.failing: Exception | None = None
        self.calls: list[str] = []
        self.asked = True
        self.node_uid = "node-uid"
        self.no_owners: Exception | None = None  # what a patch of owners is answered with
        self.garbled = False
        self.heartbeat = Heartbeat(
            "n",
            lambda: Writer("ns", self) if self.asked else None,
            lambda: self.node_uid,
            period_s=3.0,
            wall=self.clock,
            monotonic=self.clock,
            random=lambda: random,
        )

    def patch(self, path: str, body: bytes, *, content_type: str, deadline_s: float | None) -> bytes:
        assert (path, content_type, deadline_s) == (f"{LEASES}/n", "application/merge-patch+json", 3.0)
        self._call("patch")
        if "n" not in self.leases:
            raise errors.NotFound(path=path, message='leases "n" not found')
        patch = json.loads(body)
        if self.no_owners is not None and "metadata" in patch:
            raise self.no_owners
        self.leases["n"]["metadata"] |= patch.get("metadata", {})
        self.leases["n"]["spec"] |= patch["spec"]
        return b"{" if self.garbled else json.dumps(self.leases["n"]).encode()

    def create(self, path: str, body: bytes, *, deadline_s: float | None) -> bytes:
        assert (path, deadline_s) == (LEASES, 3.0)
        self._call("create")
        made = json.loads(body)
        if self.leases.setdefault(made["metadata"]["name"], made) is not made:
            raise errors.AlreadyExists(path=path, message="there")
        return b""

    def _call(self, what: str) -> None:
        self.calls.append(what)
        if self.failing is not None:
            raise self.failing

    def run(self, seconds: float) -> None:
        end = self.clock() + seconds
        while self.clock() < end:
            self.clock.time += self.heartbeat.turn()


def test_it_is_made_once_with_its_node_as_owner_and_renewed_from_then_on() -> None:
    scene = Scene()
    scene.run(9)
    assert (["patch", "create", "patch", "patch"], OWNER) == (
        scene.calls,
        scene.leases["n"]["metadata"]["ownerReferences"],
    )
    assert ("n", 12, "2023-11-14T22:13:26.000000Z") == tuple(
        scene.leases["n"]["spec"][key] for key in ("holderIdentity", "leaseDurationSeconds", "renewTime")
    )


@pytest.mark.parametrize(("random", "expected"), [(0.0, 2.7), (0.5, 3.0), (1.0, 3.3)])
def test_agents_do_not_write_together(random: float, expected: float) -> None:
    assert pytest.approx(expected) == Scene(random).heartbeat.turn()


def test_nothing_is_written_while_no_health_pod_asks_us_to_speak() -> None:
    scene = Scene()
    scene.asked = False
    scene.run(60)
    assert [] == scene.calls


def test_an_outage_queues_nothing_up_and_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.run(6)
    scene.failing = DOWN
    scene.calls.clear()
    scene.run(60)
    tried, scene.failing = len(scene.calls), None
    scene.run(3)
    assert (True, ["heartbeat not written, will retry"]) == (
        20 <= tried <= 40,
        [record.getMessage() for record in caplog.records if record.levelname == "WARNING"],
    )


def test_a_lease_that_somebody_has_made_meanwhile_is_one() -> None:
    scene = Scene()
    scene.heartbeat.turn()
    assert (0, 1) == (scene.heartbeat.errors, scene.heartbeat.beats)


def test_one_that_was_made_before_its_node_was_known_has_it_as_owner_as_soon_as_it_is() -> None:
    """Else it stays when its Node is deleted, for ever."""
    scene = Scene()
    scene.node_uid = ""
    scene.run(9)
    before, scene.node_uid = scene.leases["n"]["metadata"].get("ownerReferences"), "node-uid"
    scene.run(9)
    assert (None, OWNER) == (before, scene.leases["n"]["metadata"]["ownerReferences"])


def test_an_owner_that_it_has_is_left_to_it() -> None:
    scene = Scene()
    theirs = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c"}]
    scene.leases["n"] = {"metadata": {"name": "n", "ownerReferences": theirs}, "spec": {}}
    scene.run(9)
    assert theirs == scene.leases["n"]["metadata"]["ownerReferences"]


@pytest.mark.parametrize("refusal", [errors.Forbidden(path=LEASES), errors.Invalid(path=LEASES)])
def test_where_no_owner_may_be_given_the_beats_go_on_without(refusal: Exception) -> None:
    scene = Scene()
    scene.node_uid = ""
    scene.run(3)
    scene.node_uid, scene.no_owners = "node-uid", refusal
    scene.calls.clear()
    scene.run(12)
    assert (5, 0) == (len(scene.calls), scene.heartbeat.errors)  # one of them was refused


def test_a_reply_that_cannot_be_decoded_is_a_beat_all_the_same() -> None:
    scene = Scene()
    scene.garbled = True
    scene.run(9)
    assert (3, 0) == (scene.heartbeat.beats, scene.heartbeat.errors)
