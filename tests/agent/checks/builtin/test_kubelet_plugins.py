"""The check `kubeletPlugins`: who answers, who is missing, who hangs."""

from pathlib import Path

import pytest

from agent.checks.builtin.kubelet_plugins import Check, Settings, judged
from agent.checks.state import CheckState, Finding
from agent.cri.base import Trouble
from agent.kubelet.plugins.base import PluginError, PluginInfo
from tests.agent.kubelet.plugins.test_sockets import listen
from tools.kit.cases import cases

CSI = PluginInfo("CSIPlugin", "csi.example.com", "", ("1.0.0",))
GPU = PluginInfo("DRAPlugin", "gpu.example.com", "", ("v1.DRAPlugin",))
HANGS = PluginError(Trouble.HANGS, within_s=0.8)
LEFT = PluginError(Trouble.NOBODY_LISTENS)
REFUSED = PluginError(Trouble.NO_RIGHTS)
HANGING = {"/a": CSI, "/d/b.sock": HANGS}
BOTH = "CSIPlugin/csi.example.com, DRAPlugin/gpu.example.com"


@cases(
    "answers, expected, state, output",
    ("none there, none expected", {}, (), "passed", "no plugins"),
    ("all answer", {"/a": CSI, "/b": GPU}, (), "passed", BOTH),
    ("expected by name", {"/a": CSI, "/b": GPU}, ("gpu.example.com",), "passed", BOTH),
    ("by type and name", {"/a": CSI}, ("CSIPlugin/csi.example.com",), "passed", BOTH[:25]),
    ("another type", {"/a": CSI}, ("DRAPlugin/csi.example.com",), "failed", "missing: DRAPlugin/csi.example.com"),
    ("expected and not there", {}, ("x", "y"), "failed", "missing: x, y"),
    ("a killed plugin's socket", {"/d/a.sock": LEFT}, ("x",), "failed", "missing: x; a.sock: nobody listens"),
    ("a hanging one may be it", {"/d/a.sock": HANGS}, ("x",), "hung", "missing: x; a.sock: no answer within 0.8s"),
    ("no right to ask", {"/d/a.sock": REFUSED}, ("x",), "unknown", "missing: x; a.sock: no rights to open the socket"),
    ("all and a hanging one", HANGING, ("csi.example.com",), "warned", "b.sock: no answer within 0.8s"),
    ("a hanging one, all are needed", HANGING, (), "hung", "b.sock: no answer within 0.8s"),
    ("a socket was left", {"/a": CSI, "/d/b.sock": LEFT}, (), "warned", "b.sock: nobody listens"),
    ("no rights", {"/d/b.sock": REFUSED}, (), "unknown", "b.sock: no rights to open the socket"),
    ("a name that would break the line", {"/a": PluginInfo("T\n", "a\x1bb" * 3)}, (), "passed", None),
)
def test_what_is_found(answers, expected, state, output) -> None:
    found = judged(answers, expected)
    assert (CheckState(state), output if output is not None else found.output) == (found.state, found.output)
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
