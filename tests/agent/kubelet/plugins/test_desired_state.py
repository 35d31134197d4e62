"""What is to be done with plugins (rows PM3, PM4, PM9, PM10)."""

import pytest

from agent.kubelet.plugins.base import PluginInfo
from agent.kubelet.plugins.desired_state import Failed, Registered, failed, to_deregister, to_register
from agent.kubelet.plugins.sockets import Version

ONE, OTHER = Version(1, 1, 1), Version(1, 1, 2)
THERE = {"a": ONE}
IN = {"a": Registered(ONE, PluginInfo("CSIPlugin", "x"))}


@pytest.mark.parametrize(
    ("wanted", "registered", "pending", "failures", "expected"),
    [
        pytest.param({}, {}, (), {}, ([], []), id="nothing there"),
        pytest.param(THERE, {}, (), {}, ([], ["a"]), id="PM1: a new socket"),
        pytest.param(THERE, IN, (), {}, ([], []), id="PM1: registered"),
        pytest.param({}, IN, (), {}, (["a"], []), id="PM3: gone"),
        pytest.param({"a": OTHER}, IN, (), {}, (["a"], ["a"]), id="PM4: removed and made again"),
        pytest.param(THERE, {}, ("a",), {}, ([], []), id="PM10: being registered"),
        pytest.param({}, IN, ("a",), {}, ([], []), id="PM10: gone while it is being registered"),
        pytest.param(THERE, {}, ("b",), {}, ([], ["a"]), id="PM10: another one is being registered"),
        pytest.param(THERE, {}, (), {"a": Failed(9.0, 0.5)}, ([], ["a"]), id="PM9: the pause is over"),
        pytest.param(THERE, {}, (), {"a": Failed(9.5, 0.5)}, ([], []), id="PM9: not at its very end"),
        pytest.param({"a": OTHER}, {}, (), {"a": Failed(9.0, 2.0)}, ([], []), id="PM9: another plugin waits as well"),
    ],
)
def test_what_is_to_be_done(wanted, registered, pending, failures, expected) -> None:
    facts = (wanted, registered, pending, failures, 10.0)
    assert expected == (to_deregister(*facts), to_register(*facts))


def test_pm9_the_pause_doubles_from_half_a_second_to_122() -> None:
    pauses, last = [], None
    for _ in range(11):
        last = failed(last, 0.0)
        pauses.append(last.pause_s)
    assert [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 122.0, 122.0, 122.0] == pauses
