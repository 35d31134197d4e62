"""The arithmetic of the agent's measurements."""

import pytest

from tools.bench.agent.checks import figures_of
from tools.bench.agent.peer import lateness_s
from tools.bench.agent.resources import Held, millicores

BEFORE = Held(at_s=100.0, own_s=1.0, children_s=0.5, rss_mib=28.0, peak_mib=30.0, threads=33, descriptors=9)
AFTER = Held(at_s=160.0, own_s=1.3, children_s=0.8, rss_mib=29.0, peak_mib=31.0, threads=33, descriptors=9)


def test_processor_time_is_that_of_the_agent_and_of_what_it_has_waited_for() -> None:
    assert (5.0, 5.0) == tuple(round(part, 6) for part in millicores(BEFORE, AFTER))


def test_the_figures_have_both_together_and_say_each() -> None:
    found = figures_of(BEFORE, AFTER)
    assert [("agent_20_rss_mib", 29.0), ("agent_20_cpu_m", 10.0)] == [(f.name, round(f.value, 6)) for f in found]
    assert "own 5.0, of the commands 5.0" == found[1].note


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param({"/": [5.0, 6.0, 7.0]}, [0, 0, 0], id="a series that keeps its time, whenever it begins"),
        pytest.param({"/": [5.0, 6.25, 7.0]}, [0, 250, 0], id="one late start does not move those behind it"),
        pytest.param({"/": [5.0, 5.75, 7.0]}, [0, 250, 0], id="what is early counts as what is late"),
        pytest.param({"/": [5.25, 6.0, 7.0]}, [250, 0, 0], id="the first may be the late one"),
        pytest.param({"/": [5.0, 8.0, 9.0]}, [0, 0, 0], id="a start that is missing is nobody else's lateness"),
        pytest.param({"/a": [5.0, 6.0], "/b": [5.5, 6.5]}, [0, 0, 0, 0], id="each series has its own time"),
        pytest.param({"/": []}, [], id="nothing came"),
    ],
)
def test_lateness_is_the_distance_from_the_own_time(times: dict[str, list[float]], expected: list[int]) -> None:
    assert expected == [round(1000 * late) for late in lateness_s(times, 1.0)]
