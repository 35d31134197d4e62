"""When a token is asked for, and what is shown while none can be had, by a fake clock."""

import json
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from agent.identity.token import LIFETIME_S, BoundToken
from agent.report.heartbeat import Heartbeat, Writer
from kube import errors
from kube.errors import CredentialsInvalid
from tools.kit.clock import Clock
from tools.kit.waiting import wait_until

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


def at_once(renewal: Callable[[], None]) -> None:
    renewal()


class Scene:
    def __init__(self, *, background: Callable[[Callable[[], None]], None] = at_once, random: float = 0.0) -> None:
        self.server, self.clock = FakeServer(), Clock(1000.0)
        self.token = BoundToken(
            self.server,
            namespace="ns",
            account="health",
            pod_name="p",
            pod_uid="u",
            monotonic=self.clock,
            random=lambda: random,
            background=background,
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


class SlowServer(FakeServer):
    """Its answers come when the test says so, which who asks has to wait for: five seconds of the clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock, self.slow = clock, False
        self.asked, self.answers = threading.Event(), threading.Event()

    def create(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes:
        if self.slow and threading.current_thread() is threading.main_thread():
            self.clock.time += deadline_s or 0.0
            raise DOWN
        if self.slow:
            self.asked.set()
            self.answers.wait(60.0)
        return super().create(path, body, deadline_s=deadline_s)


@pytest.fixture
def slow() -> Iterator[tuple[SlowServer, BoundToken]]:
    server = SlowServer(Clock(1000.0))
    token = BoundToken(server, namespace="ns", account="health", pod_name="p", pod_uid="u", monotonic=server.clock)
    yield server, token
    server.answers.set()


def test_nothing_that_is_written_waits_for_a_renewal_while_the_last_token_holds(
    slow: tuple[SlowServer, BoundToken],
) -> None:
    """Heartbeats are every 3 s, and 9 s of silence close the node."""
    server, token = slow
    beats = []

    class Client:
        def patch(self, *_: object, **__: object) -> bytes:
            token.headers(server.clock())
            beats.append(server.clock())
            return b""

    heartbeat = Heartbeat(
        "n", lambda: Writer("ns", Client()), lambda: "", period_s=3.0, wall=server.clock, monotonic=server.clock
    )  # type: ignore[arg-type]
    heartbeat.turn()
    server.slow, server.clock.time = True, server.clock() + 0.81 * LIFETIME_S
    for _ in range(10):
        server.clock.time += heartbeat.turn()
    gaps = [after - before for before, after in pairwise(beats[1:])]
    assert (True, 9) == (max(gaps) <= 4.0, len(gaps))
    assert server.asked.wait(60.0)
    server.answers.set()
    wait_until(lambda: token.headers(server.clock())["Authorization"] == "Bearer t2", "the new token", timeout_s=60.0)
    assert 2 == len(server.bodies)


def test_a_renewal_that_hangs_is_not_waited_for_when_the_last_token_has_ended() -> None:
    hanging: list[Callable[[], None]] = []
    scene = Scene(background=hanging.append)
    scene.shown()
    scene.clock.time += 2900
    shown = [scene.shown(), scene.shown()]
    scene.clock.time += 1000
    assert (["t1", "t1"], 1, "t2") == (shown, len(hanging), scene.shown())


def test_without_a_thread_for_it_the_last_token_is_shown_and_it_is_tried_again() -> None:
    def none_left(_: Callable[[], None]) -> None:
        raise RuntimeError("can't start new thread")

    scene = Scene(background=none_left)
    scene.shown()
    scene.clock.time += 2900
    shown = scene.shown()
    scene.clock.time += 1000
    assert ("t1", "t2") == (shown, scene.shown())


@pytest.mark.parametrize(("random", "expected"), [(0.0, 0.8), (0.5, 0.75), (1.0, 0.7)])
def test_agents_that_were_started_together_do_not_ask_together_for_ever(random: float, expected: float) -> None:
    scene = Scene(random=random)
    scene.shown()
    scene.clock.time += expected * LIFETIME_S - 1
    before = scene.shown()
    scene.clock.time += 2
    assert ("t1", "t2") == (before, scene.shown())
