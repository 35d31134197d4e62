"""Does the kubelet still report? Its port each 2 s and its Lease as often as `silence` wants it, by a fake clock."""

from collections.abc import Collection

import pytest

from agent.opinion import kubelet_liveness
from tools.kit.cases import cases

LIMIT_S = 24.0


def history(
    seconds: int,
    *,
    port_dies: int | None = None,
    lease_dies: int | None = None,
    port_lives: int | None = None,
    lease_lives: int | None = None,
    port: bool = True,
    api: Collection[int] = (),
) -> list[kubelet_liveness.Seen]:
    """What is seen every two seconds, for so many. A kubelet renews each ten seconds.

    port_dies, lease_dies: from when each is silent, None: never; port_lives, lease_lives: from when no more. api: when
    the API server is away.
    """
    seen, due_at, history = kubelet_liveness.Seen(), 0.0, []
    for second in range(0, seconds, 2):
        if port:
            dead = port_dies is not None and port_dies <= second < (port_lives or seconds)
            if dead and seen.port_silent_since is None:
                due_at = second
            seen = (
                kubelet_liveness.port_silent(seen, "no answer", float(second))
                if dead
                else kubelet_liveness.port_answered(seen)
            )
        if second >= due_at:
            if second in api:
                seen = kubelet_liveness.lease_unread(seen)
            else:
                lives = lease_lives is not None and second >= lease_lives
                renewed = second if lease_dies is None or lives else min(second, lease_dies)
                seen = kubelet_liveness.lease_read(seen, str(renewed // 10), float(second))
            due_at = second + kubelet_liveness.lease_pause_s(seen, has_port=port, random=0.5)
        seen = kubelet_liveness.latched(seen, float(second), has_port=port, lease_limit_s=LIMIT_S)
        history.append(seen)
    return history


def spans(held: list[bool]) -> list[tuple[int, int | None]]:
    """From which second until which it held, each; None: until the end."""
    found: list[tuple[int, int | None]] = []
    for second, (before, now) in enumerate(zip([False, *held], held, strict=False)):
        if now and not before:
            found.append((2 * second, None))
        elif before and not now:
            found[-1] = (found[-1][0], 2 * second)
    return found


def often(start: int, stop: int) -> set[int]:
    """Four seconds of each twelve: of three readings one fails."""
    return {second for second in range(start, stop) if second % 12 < 4}


NEVER: list[tuple[int, int | None]] = []
DEAD = {"port_dies": 60, "lease_dies": 60}


@cases(
    "facts, expected",
    ("a kubelet that lives", {}, NEVER),
    ("one that is stopped or killed", DEAD, [(76, None)]),
    ("only its port is shut: its Lease moves", {"port_dies": 60}, NEVER),
    ("only its Lease is refused: it lives", {"lease_dies": 60}, NEVER),
    ("without a port, alive", {"port": False}, NEVER),
    ("without a port, dead", {"lease_dies": 60, "port": False}, [(88, None)]),
    ("the API server is away: no witness", {**DEAD, "api": range(60, 500)}, NEVER),
    ("until it is back, and tells as long", {**DEAD, "api": range(60, 100)}, [(116, None)]),
    ("no port, no Lease for a moment", {"lease_dies": 60, "port": False, "api": range(72, 80)}, [(104, None)]),
    ("silent while its Lease cannot be read", {**DEAD, "api": range(100, 104)}, [(76, None)]),
    ("or for longer than that", {**DEAD, "api": range(100, 190)}, [(76, None)]),
    ("the same without a port", {"lease_dies": 60, "port": False, "api": range(96, 160)}, [(88, None)]),
    ("until its port answers", {**DEAD, "api": range(100, 190), "port_lives": 150}, [(76, 150)]),
    ("until its Lease moves: only its port is shut", {**DEAD, "api": range(100, 130), "lease_lives": 150}, [(76, 152)]),
    ("no port", {"lease_dies": 60, "port": False, "api": range(96, 130), "lease_lives": 150}, [(88, 152)]),
    ("one reading in three fails: it is late", {**DEAD, "api": often(60, 200)}, [(124, None)]),
    ("the same, and its Lease moves", {"port_dies": 60, "api": often(60, 200)}, NEVER),
    ("a late renewal, a port that never answered", {"port_dies": 0, "lease_dies": 60, "lease_lives": 80}, NEVER),
    ("then its Lease alone tells, for the limit of that", {"port_dies": 0, "lease_dies": 60}, [(88, None)]),
    ("the API server was away for it too", {**DEAD, "lease_lives": 92, "api": range(64, 88)}, NEVER),
)
def test_who_is_called_silent(facts: dict[str, object], expected: list[tuple[int, int | None]]) -> None:
    assert expected == spans([seen.silent for seen in history(200, **facts)])


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param({}, NEVER, id="a kubelet that lives"),
        pytest.param({"lease_dies": 60}, [(104, None)], id="its port answers, and it does not renew"),
        pytest.param({"lease_dies": 60, "lease_lives": 140}, [(104, 144)], id="until it moves again"),
        pytest.param({"lease_dies": 60, "api": range(110, 160)}, [(104, None)], id="not while it cannot be read"),
        pytest.param({"lease_dies": 60, "lease_lives": 90}, NEVER, id="it comes late"),
        pytest.param({"lease_dies": 60, "api": range(60, 200)}, NEVER, id="the API server is away: no witness"),
        pytest.param({"lease_dies": 60, "api": range(84, 90)}, [(136, None)], id="a reading fails: later"),
        pytest.param({"lease_dies": 60, "port": False}, NEVER, id="without a port it is silent, which says it"),
    ],
)
def test_whose_lease_alone_is_called_silent(facts: dict[str, object], expected: list[tuple[int, int | None]]) -> None:
    assert expected == spans([seen.lease_silent for seen in history(200, **facts)])


def test_one_answer_of_the_port_ends_it_at_once() -> None:
    seen = kubelet_liveness.port_silent(kubelet_liveness.port_answered(kubelet_liveness.Seen()), "", 0.0)
    seen = kubelet_liveness.lease_read(seen, "r", 0.0)
    seen = kubelet_liveness.lease_read(kubelet_liveness.port_silent(seen, "", 20.0), "r", 20.0)
    facts = {"has_port": True, "lease_limit_s": LIMIT_S}
    assert (True, False) == (
        kubelet_liveness.latched(seen, 20.0, **facts).silent,
        kubelet_liveness.latched(
            kubelet_liveness.port_answered(kubelet_liveness.latched(seen, 20.0, **facts)), 20.0, **facts
        ).silent,
    )


def test_what_its_lease_said_before_its_port_fell_silent_does_not_count() -> None:
    """Else a port that is silent for a moment after a day would find a Lease last read a day ago; and a kubelet
    that is restarted just before it renews would have less time than one that is restarted just after."""
    seen = kubelet_liveness.lease_read(kubelet_liveness.port_silent(kubelet_liveness.Seen(), "", 0.0), "r", 0.0)
    seen = kubelet_liveness.port_silent(kubelet_liveness.port_answered(seen), "", 86_400.0)
    seen = kubelet_liveness.lease_read(seen, "r", 86_400.0)
    assert not kubelet_liveness.latched(seen, 86_408.0, has_port=True, lease_limit_s=LIMIT_S).silent


def test_a_lease_that_stands_for_long_before_the_port_is_silent_does_not_count_either() -> None:
    seen = history(60, port_dies=50, lease_dies=0)[-1]
    assert not seen.silent


def test_a_reading_that_is_old_finds_nobody_silent_and_ends_no_silence() -> None:
    dead = history(74, port_dies=60, lease_dies=60)[-1]
    found = history(80, port_dies=60, lease_dies=60)[-1]
    facts = {"has_port": True, "lease_limit_s": LIMIT_S}
    assert (False, True) == (
        kubelet_liveness.latched(dead, 200.0, **facts).silent,
        kubelet_liveness.latched(found, 200.0, **facts).silent,
    )


@pytest.mark.parametrize(
    ("facts", "random", "expected"),
    [
        pytest.param({}, 0.0, (10.0, True), id="its port answers: seldom, out of the server's memory"),
        pytest.param({}, 1.0, (20.0, True), id="and not all agents together"),
        pytest.param({"port_dies": 60}, 0.5, (4.0, False), id="its port is silent: often, and the newest"),
        pytest.param({"lease_dies": 20}, 0.5, (8.0, False), id="its Lease has not moved: more often, and the newest"),
        pytest.param({"port": False}, 0.5, (8.0, False), id="it has no port"),
        pytest.param({"port_dies": 0}, 0.5, (8.0, False), id="its port has never answered, as where it has none"),
    ],
)
def test_how_often_its_lease_is_read(facts: dict[str, object], random: float, expected: tuple[float, bool]) -> None:
    seen, port = history(64, **facts)[-1], bool(facts.get("port", True))
    assert expected == (
        kubelet_liveness.lease_pause_s(seen, has_port=port, random=random),
        kubelet_liveness.all_seems_well(seen, has_port=port),
    )


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param({"port_dies": None}, True, id="its port answers"),
        pytest.param({"port_dies": 0}, True, id="its port is silent from the start, and its Lease moves"),
        pytest.param({"port_dies": 0, "lease_dies": 0}, True, id="it was found silent"),
        pytest.param({"port_dies": 0, "lease_dies": 0, "api": range(200)}, False, id="nobody could tell yet"),
        pytest.param({"port": False, "api": range(200)}, False, id="the same without a port"),
        pytest.param({"port": False}, True, id="without a port, its Lease moves"),
    ],
)
def test_of_whom_it_is_known_whether_it_lives(facts: dict[str, object], expected: bool) -> None:
    seen = history(40, **facts)[-1]
    assert expected == kubelet_liveness.is_known(seen, has_port=bool(facts.get("port", True)))
