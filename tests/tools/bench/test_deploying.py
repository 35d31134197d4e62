"""How long no scheduler answered, of what was seen on each host; and what becomes of figures of another run."""

import pytest

from tools.bench.deploying import absences, longest, merged, together
from tools.bench.figures import Figure

ANSWERS = [n / 10 for n in range(50)]  # 0 to 4.9 s


@pytest.mark.parametrize(
    ("answered", "expected"),
    [
        pytest.param(ANSWERS, [], id="one that is always there"),
        pytest.param([*ANSWERS, 17.0, 17.1], [(4.9, 17.0)], id="one that starts anew"),
        pytest.param([17.1, 17.0, *ANSWERS], [(4.9, 17.0)], id="in any order"),
        pytest.param([0.0, 0.9, 1.8], [], id="a busy machine is no absence"),
    ],
)
def test_a_scheduler_is_absent_between_answers_that_are_far_apart(answered, expected):
    assert expected == absences(answered)


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        pytest.param([[(1.0, 11.0)]], 10.0, id="of one host it is the same"),
        pytest.param([[(1.0, 11.0)], [(11.0, 23.0)], [(23.0, 30.0)]], 0.0, id="one after the other"),
        pytest.param([[(1.0, 11.0)], [(8.0, 20.0)]], 3.0, id="two that overlap"),
        pytest.param([[(1.0, 11.0)], [(8.0, 20.0)], []], 0.0, id="two that overlap, and a third one"),
        pytest.param([[(1.0, 11.0), (30.0, 34.0)], [(2.0, 3.0), (29.0, 33.5)]], 3.5, id="twice"),
    ],
)
def test_all_are_absent_only_where_each_is(hosts, expected):
    assert expected == longest(together(hosts))


def test_figures_of_another_number_of_control_planes_stay():
    earlier = [Figure("deploy_1_first_s", 80.0, "s"), Figure("deploy_3_first_s", 150.0, "s")]
    now = [Figure("deploy_1_first_s", 70.0, "s")]
    assert {"deploy_1_first_s": 70.0, "deploy_3_first_s": 150.0} == {f.name: f.value for f in merged(earlier, now)}
