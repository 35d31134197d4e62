"""Five checks that flap on a shared cause, from their runs to the requests: how often the API server is asked. And a
fault by itself, which waits for nothing."""

import pytest

from agent.checks.catalogue import CheckSpec
from agent.checks.engine import CheckEngine
from agent.checks.state import CheckState, Finding, Thresholds
from agent.modes.pod import condition_of
from agent.report.condition import CHANGES
from tests.agent.report.test_condition import FALSE, TRUE, Scene

ONE = Thresholds(success=1, failure=1)
SECONDS = 600


def asked_at(flaps: str) -> tuple[list[float], list[float]]:
    """When the condition was written, and when the API server was asked for anything, in seconds from the start.
    flaps: of each check a letter a second, again and again: p passes, f fails."""
    scene = Scene()
    scene.clock.time = 0.0

    def run(phase: int) -> Finding:
        letter = flaps.split()[phase % len(flaps.split())][int(scene.clock()) % len(flaps.split()[0])]
        return Finding(CheckState.PASSED if letter == "p" else CheckState.FAILED, letter)

    specs = [CheckSpec(f"check-{n}", lambda n=n: run(n), period_s=1.0, timeout_s=1.0, thresholds=ONE) for n in range(5)]
    engine = CheckEngine(
        specs,
        lambda health: scene.publisher.publish(condition_of(health)),
        wall=scene.clock,
        monotonic=scene.clock,
        random=lambda: 0.0,
    )
    written: list[float] = []
    asked: list[float] = []
    for _ in range(SECONDS):
        for worker in engine._workers:
            worker._turn()
        engine._turn()
        before = len(scene.server.bodies), scene.server.attempts
        now = scene.clock()
        scene.wait(1.0)
        written += [now] * (len(scene.server.bodies) - before[0])
        asked += [now] * (scene.server.attempts - before[1])
    assert all(sum(count for name, _, count in engine.runs() if name == spec.name) >= SECONDS - 2 for spec in specs)
    return written, asked


def within(times: list[float], seconds: float) -> int:
    """The most of them that any so many seconds have."""
    return max(sum(first <= one < first + seconds for one in times) for first in times)


@pytest.mark.parametrize(
    ("flaps", "looks"),
    [
        pytest.param("pf", True, id="all pass and all fail: the node opens and closes"),
        pytest.param("pp pf pp pp pp", True, id="one alone does"),
        pytest.param("pf pf pf fp fp", False, id="some pass while the others fail: it stays closed"),
        pytest.param("ppf pff fpp fff ppp", False, id="each by itself"),
    ],
)
def test_of_five_that_flap_each_second_one_write_in_ten_seconds_is_made_after_the_first_five(
    flaps: str, looks: bool
) -> None:
    """What closes borrows one. Before it opens the agent asks who speaks for the pod, by a PATCH that changes nothing:
    that is one more in twenty seconds."""
    written, asked = asked_at(flaps)
    for seconds in (10, 60, 300, SECONDS):
        assert within(written, seconds) <= CHANGES + 1 + seconds / 10
        assert within(asked, seconds) <= CHANGES + 2 + seconds / 10 + (looks * seconds / 20)
    after = [at for at in written if at >= 60]
    assert within(after, 60) <= 60 / 10 + 1
    assert len(written) >= SECONDS / 10 - 2, "it goes on being told"


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param((0.0, 3.0, 2.0), id="a fault and its end"),
        pytest.param(
            (0.0, 3.0, 1.0, 2.0, 1.0), id="two checks see its end at different times: it opens, closes, opens"
        ),
        pytest.param((0.0, 3.0, 20.0, 3.0, 1.0, 2.0, 1.0), id="the same twenty seconds after another fault"),
    ],
)
def test_what_opens_a_node_that_was_well_waits_for_nothing(seconds: tuple[float, ...]) -> None:
    """`seconds`: after each change, the first of which is the start of the agent."""
    scene, late = Scene(), []
    for number, pause_s in enumerate(seconds):
        scene.publish((TRUE, FALSE)[number % 2])
        late.append(number + 1 - len(scene.server.written))
        scene.wait(60.0 if number == 0 else pause_s)
    assert [0] * len(seconds) == late
