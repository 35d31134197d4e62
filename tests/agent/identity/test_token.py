"""When a token is asked for, and what is shown while none can be had, by a fake clock."""

import json

import pytest

from agent.identity.token import LIFETIME_S, BoundToken
from kube import errors
from kube.errors import CredentialsInvalid
from tests.kit.clock import Clock

PATH = "/api/v1/namespaces/ns/serviceaccounts/health/token"
DOWN = errors.Unreachable(path=PATH, message="connection refused")
POD = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "u"}


class FakeServer:
    def __init__(self) -> None:
        self.bodies: list[dict[str, object]] = []
        self.failing: Exception | None = None
        self.lifetime_s = LIFETIME_S

    def create(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes:
        assert (path, True) == (PATH, deadline_s is not None)
        self.bodies.append(json.loads(body)["spec"])
        if self.failing is not None:
            raise self.failing
        reply = {"spec": {"expirationSeconds": self.lifetime_s}, "status": {"token": f"t{len(self.bodies)}"}}
        return json.dumps(reply).encode()


class Scene:
    def __init__(self) -> None:
        self.server, self.clock = FakeServer(), Clock(1000.0)
        self.token = BoundToken(
            self.server, namespace="ns", account="health", pod_name="p", pod_uid="u", monotonic=self.clock
        )

    def shown(self) -> str:
        return self.token.headers(self.clock())["Authorization"].removeprefix("Bearer ")


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_it_is_bound_to_the_pod_and_names_no_audience(scene: Scene) -> None:
    scene.shown()
    assert [{"expirationSeconds": 3600, "boundObjectRef": POD}] == scene.server.bodies


@pytest.mark.parametrize(
    ("later_s", "expected"),
    [
        pytest.param(0, "t1", id="one token does for all that is written"),
        pytest.param(2879, "t1", id="until four fifths of its time"),
        pytest.param(2881, "t2", id="and is asked for anew then"),
        pytest.param(90_000, "t2", id="or long after its end"),
    ],
)
def test_a_token_is_renewed_before_it_ends(scene: Scene, later_s: float, expected: str) -> None:
    scene.shown()
    scene.clock.time += later_s
    assert expected == scene.shown()


def test_while_none_can_be_had_the_last_one_is_shown_until_it_ends_and_the_server_is_asked_each_ten_seconds(
    scene: Scene,
) -> None:
    scene.shown()
    scene.server.failing = DOWN
    scene.clock.time += 2900
    for _ in range(20):
        assert scene.shown() == "t1"
        scene.clock.time += 1
    assert len(scene.server.bodies) == 1 + 2
    scene.clock.time += 1000
    with pytest.raises(CredentialsInvalid, match=r"no token for the health pod ns/p: .*connection refused"):
        scene.shown()


def test_after_a_refusal_another_one_is_asked_for_at_once(scene: Scene) -> None:
    scene.shown()
    scene.token.refresh()
    assert scene.shown() == "t2"


def test_of_a_pod_that_is_gone_no_token_is_left(scene: Scene) -> None:
    scene.server.failing = errors.NotFound(path=PATH, message='pods "p" not found')
    with pytest.raises(CredentialsInvalid, match="it is gone"):
        scene.shown()


@pytest.mark.parametrize("lifetime_s", [0, -5, 1])
def test_a_reply_that_grants_no_time_is_no_reason_to_ask_without_pause(scene: Scene, lifetime_s: int) -> None:
    scene.server.lifetime_s = lifetime_s
    for _ in range(40):
        scene.shown()
        scene.clock.time += 1
    assert len(scene.server.bodies) == 1
