"""When the own pod's condition is written, and what: guarantees 1 to 6 of agent.report.condition, by a fake clock."""

import json
import logging
import threading
import time

import msgspec
import pytest

from agent.kernel.clocks import Clocks
from agent.report.condition import CHANGES, RETRY, STARTING_HOLD_S, Condition, ConditionPublisher
from kube import contract, errors
from tools.kit.clock import Clock

UID = "uid-1"
PATH = "/api/v1/namespaces/ns/pods/p/status"
TYPE = contract.CONDITION_NODE_HEALTHY
TRUE = Condition("True", "ChecksPassed", "all checks passed (1)", "passed")
FALSE = Condition("False", "CheckFailed", "cni: failed since then: no file", "cni failed")
UNKNOWN = Condition("Unknown", "CheckUnknown", "runtime: no answer", "unknown")
STARTING = Condition("False", "Starting", "cni: starting", "starting")
DOWN = errors.Unreachable(path=PATH, message="connection refused")


class FakeServer:
    """Keeps one pod's conditions, merges by type; `failing` is raised instead while it is set."""

    def __init__(self) -> None:
        self.uid = UID
        self.conditions: dict[str, dict[str, str]] = {"Ready": {"type": "Ready", "status": "True"}}
        self.bodies: list[dict[str, object]] = []
        self.attempts = 0
        self.failing: Exception | None = None
        self.annotations: dict[str, str] = {}

    def patch(self, path: str, body: bytes, *, content_type: str, deadline_s: float | None) -> bytes:
        assert (path, content_type) == (PATH, "application/strategic-merge-patch+json")
        assert deadline_s is not None
        self.attempts += 1
        if self.failing is not None:
            raise self.failing
        parsed = json.loads(body)
        assert parsed["metadata"] == {"uid": UID}, "guarantee 1: always with the uid"
        for condition in parsed.get("status", {}).get("conditions", []):
            assert condition["type"] == TYPE, "guarantee 1: only our condition"
            self.bodies.append(condition)
            self.conditions[condition["type"]] = condition
        return msgspec.json.encode(
            {
                "metadata": {"uid": self.uid, "annotations": self.annotations},
                "status": {"conditions": [*self.conditions.values()]},
            }
        )

    @property
    def written(self) -> list[tuple[str, str]]:
        return [(body["status"], body["reason"]) for body in self.bodies]


class Scene:
    def __init__(self) -> None:
        self.server = FakeServer()
        self.clock = Clock(1000.0)
        self.publisher = self.new()

    def new(self, **options: object) -> ConditionPublisher:
        return ConditionPublisher(
            self.server,
            namespace="ns",
            pod_name="p",
            pod_uid=UID,
            clocks=Clocks(wall=lambda: 1_700_000_000 + self.clock(), monotonic=self.clock, random=lambda: 0.5),
            **options,
        )

    def publish(self, wanted: Condition) -> None:
        self.publisher.publish(wanted)
        self.settle()

    def settle(self) -> None:
        while self.publisher.turn() == 0.0:
            pass

    def wait(self, seconds: float) -> None:
        """Lets time pass as the publisher's thread would, turn by turn."""
        end = self.clock() + seconds
        while True:
            pause_s = self.publisher.turn()
            if pause_s and self.clock() + pause_s > end:
                break
            self.clock.time += pause_s
        self.clock.time = end
        self.settle()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_change_is_written_at_once_and_once(scene: Scene) -> None:
    for wanted in (TRUE, TRUE, FALSE, FALSE, TRUE):
        scene.publish(wanted)
    assert [("True", "ChecksPassed"), ("False", "CheckFailed"), ("True", "ChecksPassed")] == scene.server.written
    assert scene.server.bodies[1]["message"] == FALSE.message
    assert scene.server.conditions["Ready"] == {"type": "Ready", "status": "True"}


def test_the_transition_time_moves_with_the_status_alone(scene: Scene) -> None:
    other = Condition("False", "CheckUnknown", "cni: unknown", "cni unknown")
    for wanted in (TRUE, FALSE, other, TRUE):
        scene.publish(wanted)
        scene.clock.time += 60
    assert ["22:30:00", "22:31:00", "22:31:00", "22:33:00"] == [
        body["lastTransitionTime"][11:-1] for body in scene.server.bodies
    ]


def test_another_message_waits_for_the_refresh(scene: Scene) -> None:
    scene.publish(FALSE)
    scene.publish(Condition(FALSE.status, FALSE.reason, "other words", FALSE.identity))
    assert len(scene.server.bodies) == 1
    scene.wait(301)
    assert ["other words"] == [body["message"] for body in scene.server.bodies[1:]]


def test_an_hour_of_nothing_costs_a_refresh_every_five_minutes(scene: Scene) -> None:
    scene.publish(TRUE)
    scene.wait(3600)
    assert len(scene.server.bodies) <= 13
    assert {("True", "ChecksPassed")} == set(scene.server.written)
    assert len({body["lastTransitionTime"] for body in scene.server.bodies}) == 1


def test_fifty_flips_without_an_api_server_are_one_write_after_it(scene: Scene) -> None:
    scene.publish(TRUE)
    scene.server.failing = DOWN
    for flip in range(50):
        scene.publisher.publish(TRUE if flip % 2 else FALSE)
        scene.wait(36)
    scene.publish(FALSE)
    scene.server.failing = None
    before = len(scene.server.bodies)
    scene.wait(38)
    assert [("False", "CheckFailed")] == scene.server.written[before:]
    assert scene.publisher.errors > 50


def test_a_health_that_flaps_each_second_is_written_once_in_ten_seconds(scene: Scene) -> None:
    """Five checks on a shared cause; the names of those that fail are part of what the condition means."""
    for second in range(120):
        names = [f"check-{number}" for number in range(5) if (second + number) % 2]
        scene.publisher.publish(Condition("False", "CheckFailed", "", (second % 2, *names)))
        scene.wait(1.0)
    assert CHANGES + 12 >= len(scene.server.bodies) >= 12


def test_the_newest_health_is_written_when_its_turn_comes_and_what_closes_at_once(scene: Scene) -> None:
    for wanted in (TRUE, FALSE, TRUE, FALSE, TRUE, FALSE, TRUE):
        scene.publish(wanted)
    statuses = [status for status, _ in scene.server.written]
    scene.wait(19.9)
    before_its_turn = len(scene.server.written)
    scene.wait(0.2)
    scene.publish(FALSE)
    assert ["True", "False"] * 3 == statuses
    assert (6, ["True", "False"]) == (before_its_turn, [status for status, _ in scene.server.written[6:]])


def test_a_health_that_flaps_each_second_opens_once_in_twenty_seconds(scene: Scene) -> None:
    for second in range(600):
        scene.publisher.publish((TRUE, FALSE)[second % 2])
        scene.wait(1.0)
    assert 60 - 2 <= len(scene.server.bodies) <= 60 + CHANGES + 1


def test_another_check_that_fails_too_takes_no_time_from_what_opens_and_closes(scene: Scene) -> None:
    """Two checks see one fault: the second changes nothing but the names."""
    both = Condition("False", "CheckFailed", "cni, runtime: failed", "both failed")
    took = []
    for wanted in (TRUE, FALSE, both, FALSE, both, TRUE, FALSE, both, TRUE):
        scene.publish(wanted)
        took.append(len(scene.server.written))
        scene.wait(2.0)
    assert [1, 2, 2, 2, 2, 3, 4, 4, 5] == took
    scene.wait(30.0)
    assert "True" == scene.server.written[-1][0]


def test_another_reason_is_told_when_it_takes_nothing_from_the_way_back(scene: Scene) -> None:
    took = []
    for wanted, seconds in ((TRUE, 0.0), (FALSE, 2.0), (UNKNOWN, 2.0), (TRUE, 40.0), (FALSE, 0.0), (UNKNOWN, 0.0)):
        scene.publish(wanted)
        took.append(scene.server.written[-1][0])
        scene.wait(seconds)
    assert ["True", "False", "False", "True", "False", "Unknown"] == took


def test_names_alone_come_when_nothing_else_has_for_a_while(scene: Scene) -> None:
    both = Condition("False", "CheckFailed", "cni, runtime: failed", "both failed")
    for wanted in (TRUE, FALSE, both):
        scene.publish(wanted)
    scene.wait(19.9)
    before = scene.server.bodies[-1]["message"]
    scene.wait(0.2)
    assert (FALSE.message, both.message) == (before, scene.server.bodies[-1]["message"])


def test_a_server_that_asks_for_time_gets_it(scene: Scene) -> None:
    scene.server.failing = errors.TooManyRequests(path=PATH, status=429, retry_after_s=30)
    scene.publish(TRUE)
    scene.wait(29)
    assert scene.server.attempts == 1
    scene.server.failing = None
    scene.wait(22)  # and up to two thirds more: all agents are asked for the same
    assert [("True", "ChecksPassed")] == scene.server.written


@pytest.mark.parametrize(
    "failing",
    [
        pytest.param(errors.NotFound(path=PATH, status=404, message='pods "p" not found'), id="404"),
        pytest.param(
            errors.Conflict(
                path=PATH,
                status=409,
                message='Operation cannot be fulfilled on pods "p": Precondition failed: UID in precondition: a, '
                "UID in object meta: b",
            ),
            id="409 uid",
        ),
        pytest.param(
            errors.Invalid(path=PATH, status=422, message="metadata.uid: Invalid value: field is immutable"),
            id="422 uid",
        ),
    ],
)
def test_a_pod_that_is_gone_is_left_alone(scene: Scene, failing: Exception) -> None:
    scene.server.failing = failing
    scene.publish(TRUE)
    assert scene.publisher.gone
    scene.server.failing = None
    scene.publish(FALSE)
    scene.wait(1000)
    assert (1, []) == (scene.server.attempts, scene.server.bodies)


@pytest.mark.parametrize(
    "failing",
    [
        pytest.param(errors.Conflict(path=PATH, status=409, message="try again"), id="a conflict"),
        pytest.param(
            errors.Conflict(path=PATH, status=409, message='Operation cannot be fulfilled on pods "fluid": changed'),
            id="a conflict of a pod whose name holds uid",
        ),
        pytest.param(
            errors.Invalid(path=PATH, status=422, message='pods "fluid" is forbidden: a policy denied the request'),
            id="a policy's refusal of such a pod",
        ),
        pytest.param(errors.NotFound(path=PATH, status=404, message="<html>default backend"), id="a proxy's 404"),
        pytest.param(
            errors.NotFound(path=PATH, status=404, message="the server could not find the requested resource"),
            id="a server that has no pods yet",
        ),
        pytest.param(errors.Forbidden(path=PATH, status=403), id="forbidden"),
        pytest.param(errors.CredentialsInvalid("no token"), id="no token"),
        pytest.param(errors.ServerError(path=PATH, status=500), id="500"),
        pytest.param(errors.MalformedReply(path=PATH), id="a reply that is none"),
    ],
)
def test_other_errors_are_tried_again(scene: Scene, failing: Exception) -> None:
    scene.server.failing = failing
    scene.publish(TRUE)
    scene.server.failing = None
    scene.wait(10)
    assert [("True", "ChecksPassed")] == scene.server.written


def test_another_pod_of_the_same_name_is_never_written(scene: Scene) -> None:
    scene.server.uid = "uid-2"
    scene.publish(TRUE)
    assert (True, []) == (scene.publisher.gone, scene.server.bodies)


def test_a_restart_keeps_the_transition_time(scene: Scene) -> None:
    scene.publish(TRUE)
    scene.clock.time += 1000
    scene.publisher = scene.new()
    scene.publish(TRUE)
    first, second = scene.server.bodies
    assert first == second


def test_starting_waits_for_the_first_findings_and_is_skipped_when_they_come(scene: Scene) -> None:
    scene.publish(STARTING)
    scene.wait(STARTING_HOLD_S - 0.1)
    assert [] == scene.server.bodies
    scene.publish(TRUE)
    assert [("True", "ChecksPassed")] == scene.server.written


def test_starting_is_written_when_the_first_findings_take_long(scene: Scene) -> None:
    scene.publish(STARTING)
    scene.wait(STARTING_HOLD_S - 0.1)
    scene.publish(STARTING)
    scene.wait(0.2)
    assert [("False", "Starting")] == scene.server.written


def test_an_update_that_is_no_longer_one_needs_no_retry(scene: Scene) -> None:
    scene.publish(TRUE)
    scene.server.failing = DOWN
    scene.publish(FALSE)
    attempts = scene.server.attempts
    scene.publish(TRUE)
    scene.wait(60)
    assert (attempts, 1) == (scene.server.attempts, len(scene.server.bodies))


@pytest.mark.parametrize(
    ("random", "expected"),
    [
        pytest.param(0.0, [0.375, 0.75, 1.5, 3.0, 6.0, 12.0, 22.5, 22.5], id="at the soonest a quarter less"),
        pytest.param(0.5, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0], id="doubling from half a second to thirty"),
        pytest.param(1.0, [0.625, 1.25, 2.5, 5.0, 10.0, 20.0, 37.5, 37.5], id="at the latest a quarter more"),
    ],
)
def test_failed_writes_are_spread_around_doubling_pauses(random: float, expected: list[float]) -> None:
    pauses, backoff = [], RETRY
    for _ in expected:
        pause_s, backoff = backoff.next(lambda: random)
        pauses.append(pause_s)
    assert expected == pytest.approx(pauses)


def test_an_outage_is_one_line_and_its_end_another(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    scene.publish(TRUE)
    scene.server.failing = DOWN
    scene.publish(FALSE)
    scene.wait(60)
    scene.server.failing = None
    scene.wait(10)
    assert [
        "condition written",
        "condition patch failed, will retry",
        "condition patch succeeded again",
        "condition written",
    ] == [record.message for record in caplog.records]
    facts = vars(caplog.records[1])
    assert ("Unreachable", str(DOWN)) == (facts["cause"], facts["error"])


def test_a_publisher_that_was_never_started_writes_nothing_when_it_stops(scene: Scene) -> None:
    scene.publisher.publish(TRUE)
    scene.publisher.stop()
    assert 0 == scene.server.attempts


def test_stop_says_terminating_once_and_nothing_after_it(scene: Scene) -> None:
    scene.publisher.start()
    scene.publisher.publish(TRUE)
    scene.publisher.stop()
    scene.publisher.stop()
    scene.publisher.publish(TRUE)
    scene.publisher.turn()
    assert scene.server.written[-1] == ("False", "Terminating")
    assert [reason for _, reason in scene.server.written].count("Terminating") == 1


def test_stop_leaves_a_pod_that_is_gone_alone(scene: Scene) -> None:
    scene.server.failing = errors.NotFound(path=PATH, status=404, message='pods "p" not found')
    scene.publisher.start()
    scene.publish(TRUE)
    attempts = scene.server.attempts
    scene.publisher.stop()
    assert attempts == scene.server.attempts


def test_stop_does_not_wait_for_a_name_that_does_not_resolve(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """getaddrinfo knows no deadline."""
    release = threading.Event()

    def hang(*_arguments: object, **_more: object) -> bytes:
        release.wait(10)
        raise DOWN

    monkeypatch.setattr(scene.server, "patch", hang)
    scene.publisher.start()
    scene.publisher.publish(TRUE)
    begun = time.monotonic()
    scene.publisher.stop()
    took_s = time.monotonic() - begun
    release.set()
    assert took_s < 5
