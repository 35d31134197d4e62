"""The check `kubeletPlugins`: who answers, who is missing, who hangs."""

from pathlib import Path

import pytest

from agent.checks.builtin.kubelet_plugins import Check, Settings, judged
from agent.checks.state import CheckState, Finding
from agent.cri.base import Trouble
from agent.plugins.base import PluginError, PluginInfo
from tests.agent.plugins.test_found import listen

CSI = PluginInfo("CSIPlugin", "csi.example.com", "", ("1.0.0",))
GPU = PluginInfo("DRAPlugin", "gpu.example.com", "", ("v1.DRAPlugin",))
HANGS = PluginError(Trouble.HANGS, within_s=0.8)
LEFT = PluginError(Trouble.NOBODY_LISTENS)
REFUSED = PluginError(Trouble.NO_RIGHTS)
BOTH = "CSIPlugin/csi.example.com, DRAPlugin/gpu.example.com"


@pytest.mark.parametrize(
    ("answers", "expected", "state", "output"),
    [
        pytest.param({}, (), CheckState.PASSED, "no plugins", id="none there, none expected"),
        pytest.param({"/a": CSI, "/b": GPU}, (), CheckState.PASSED, BOTH, id="all answer"),
        pytest.param({"/a": CSI, "/b": GPU}, ("gpu.example.com",), CheckState.PASSED, BOTH, id="expected by name"),
        pytest.param({"/a": CSI}, ("CSIPlugin/csi.example.com",), CheckState.PASSED, BOTH[:25], id="by type and name"),
        pytest.param(
            {"/a": CSI},
            ("DRAPlugin/csi.example.com",),
            CheckState.FAILED,
            "missing: DRAPlugin/csi.example.com",
            id="another type",
        ),
        pytest.param({}, ("x", "y"), CheckState.FAILED, "missing: x, y", id="expected and not there"),
        pytest.param(
            {"/d/a.sock": LEFT},
            ("x",),
            CheckState.FAILED,
            "missing: x; a.sock: nobody listens",
            id="what a plugin that was killed leaves is none",
        ),
        pytest.param(
            {"/d/a.sock": HANGS},
            ("x",),
            CheckState.HUNG,
            "missing: x; a.sock: no answer within 0.8s",
            id="one that hangs may be the missing one",
        ),
        pytest.param(
            {"/d/a.sock": REFUSED},
            ("x",),
            CheckState.UNKNOWN,
            "missing: x; a.sock: no rights to open the socket",
            id="one that we may not ask may be, too",
        ),
        pytest.param(
            {"/a": CSI, "/d/b.sock": HANGS},
            ("csi.example.com",),
            CheckState.WARNED,
            "b.sock: no answer within 0.8s",
            id="one hangs beside all of the expected",
        ),
        pytest.param(
            {"/a": CSI, "/d/b.sock": HANGS},
            (),
            CheckState.HUNG,
            "b.sock: no answer within 0.8s",
            id="one hangs, whatever lies there is needed",
        ),
        pytest.param(
            {"/a": CSI, "/d/b.sock": LEFT}, (), CheckState.WARNED, "b.sock: nobody listens", id="a socket was left"
        ),
        pytest.param(
            {"/d/b.sock": REFUSED}, (), CheckState.UNKNOWN, "b.sock: no rights to open the socket", id="no rights"
        ),
        pytest.param(
            {"/a": PluginInfo("T\n", "a\x1bb" * 3)}, (), CheckState.PASSED, None, id="a name that would break the line"
        ),
    ],
)
def test_what_is_found(answers, expected, state, output) -> None:
    found = judged(answers, expected)
    assert (state, output if output is not None else found.output) == (found.state, found.output)
    assert found.output.isprintable()


def test_those_beyond_the_limit_may_be_the_missing_ones() -> None:
    expected = Finding(CheckState.UNKNOWN, "missing: x; 7 sockets more were not asked")
    assert expected == judged({"/a": CSI}, ("x",), 7)


@pytest.mark.parametrize(("expected", "state"), [((), CheckState.UNKNOWN), (("x",), CheckState.FAILED)])
def test_a_folder_that_is_not_there(tmp_path: Path, expected: tuple[str, ...], state: CheckState) -> None:
    folder = tmp_path / "none"
    assert Finding(state, f"there is no {folder}") == Check(Settings(str(folder), expected), 60.0)()


def test_packages_that_lack_are_no_fault_of_the_node(tmp_path: Path) -> None:
    def ask(_sockets: object, _within_s: float) -> dict[str, PluginInfo]:
        raise PluginError(Trouble.NO_PACKAGES)

    listen(tmp_path / "a.sock")
    assert CheckState.UNKNOWN == Check(Settings(str(tmp_path)), 60.0, ask)().state


def test_nobody_at_a_socket_through_grpc_itself(tmp_path: Path) -> None:
    listen(tmp_path / "a.sock")
    assert Finding(CheckState.WARNED, "a.sock: nobody listens") == Check(Settings(str(tmp_path)), 60.0)()
