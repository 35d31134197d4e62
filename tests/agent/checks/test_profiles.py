"""Ready-made lists of checks: what is in them, how own checks go with them, what is refused."""

from pathlib import Path
from typing import Any

import pytest

from agent import settings as reader
from agent.checks.builtin.runtime import Check, Settings
from agent.checks.catalogue import given_kinds, rights_of
from agent.checks.profiles import MAY_CLOSE, PROFILES, cautious, not_run
from agent.checks.state import CheckState
from component.settings import SettingsError
from tests.agent.checks.builtin.test_runtime import READY, Runtime, RuntimeStatus

NODE = "mode: node\nnode: {name: a, server: 'https://192.0.2.1:6443'}\n"
POD = "mode: pod\n"
IN_PODS = "cni pressure time runtime filesystem pod-network dns pod-addresses"
ON_NODES = "cni pressure time runtime filesystem pod-addresses certificates connection-tables kernel-log"


def parsed(text: str) -> reader.Settings:
    return reader.parse(text.encode(), {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"{POD}profile: minimal", "cni pressure time", id="minimal in a pod"),
        pytest.param(f"{NODE}profile: minimal", "cni pressure time", id="minimal on the node"),
        pytest.param(f"{POD}profile: default", IN_PODS, id="default in a pod: nothing of the host's network or keys"),
        pytest.param(f"{NODE}profile: default", ON_NODES, id="default on the node"),
        pytest.param(f"{POD}profile: gpu", f"{IN_PODS} gpu", id="gpu in a pod"),
        pytest.param(f"{NODE}profile: gpu", f"{ON_NODES} gpu", id="gpu on the node"),
        pytest.param(f"{POD}profile: storage", IN_PODS, id="storage in a pod"),
        pytest.param(f"{NODE}profile: storage", ON_NODES, id="storage on the node"),
        pytest.param(f"{POD}profile: {{name: minimal, leaveOut: [time]}}", "cni pressure", id="one left out"),
        pytest.param(f"{POD}profile: minimal\nchecks: [{{name: own, gpu: {{}}}}]", "own cni pressure time", id="own"),
        pytest.param(f"{POD}profile: minimal\nchecks: [{{name: time, gpu: {{}}}}]", "time cni pressure", id="in place"),
    ],
)
def test_what_is_in_a_profile(text: str, expected: str) -> None:
    assert expected == " ".join(check.name for check in parsed(text).checks)


def check_of(text: str, name: str) -> tuple[str, str, int, Any]:
    """Kind, severity, period, and what the kind is given."""
    check = next(check for check in parsed(text).checks if check.name == name)
    (kind,) = given_kinds(check)
    return kind, check.severity, check.period_seconds, getattr(check, kind)


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param("periodSeconds: 60", ("timeSync", "warn", 60), id="another period"),
        pytest.param("severity: gate", ("timeSync", "gate", 10), id="another severity"),
        pytest.param("timeSync: {failMilliseconds: 900}", ("timeSync", "warn", 10), id="other settings of the kind"),
        pytest.param("gpu: {}", ("gpu", "warn", 10), id="another kind"),
    ],
)
def test_an_own_check_says_only_what_is_different(own: str, expected: tuple[str, str, int]) -> None:
    assert expected == check_of(f"{POD}profile: minimal\nchecks: [{{name: time, {own}}}]", "time")[:3]


def test_a_kind_that_is_given_takes_the_place_of_the_whole_one() -> None:
    *_, cni = check_of(f"{POD}profile: minimal\nchecks: [{{name: cni, cni: {{runtime: crio}}}}]", "cni")
    assert ("crio", "/etc/cni/net.d") == (cni.runtime, cni.conf_dir)


def test_the_figures_are_those_of_the_section() -> None:
    text = f"{POD}profile: {{name: default, periodSeconds: 2, failureThreshold: 2, hostRoot: /}}\n"
    found = {check.name: check for check in parsed(text + "checks: [{name: time, periodSeconds: 60}]").checks}
    assert [60, 2, 2] == [found[name].period_seconds for name in ("time", "cni", "runtime")]
    assert ("/var/lib/kubelet/readygate",) == check_of(text, "filesystem")[3].mounts


def test_storage_closes_for_a_disk_on_which_everybody_waits() -> None:
    found = [check_of(f"{NODE}profile: {name}", "pressure") for name in ("default", "storage")]
    assert [("warn", None), ("gate", "/host/var/lib/kubelet")] == [(one[1], one[3].folder) for one in found]


@pytest.mark.parametrize("profile", PROFILES)
def test_in_a_pod_no_profile_takes_what_a_pod_of_ours_is_not_given(profile: str) -> None:
    for check in parsed(f"{POD}profile: {profile}").checks:
        rights = rights_of(check)
        wide = (rights.host_network, rights.host_pid, rights.devices, rights.capabilities)
        assert (False, False, (), ()) == wide, check.name
        paths = [path for path in (*rights.reads, *rights.writes) if not path.startswith(("/sys", "/proc"))]
        assert [] == [path for path in paths if not path.startswith("/host/")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"{POD}profile: best", 'profile.name: is the text "best", allowed: minimal, ', id="no profile"),
        pytest.param(f"{POD}profile: [a]", "profile: ", id="a list"),
        pytest.param(
            f"{POD}profile: {{name: minimal, leaveOut: [tiem]}}",
            "profile.leaveOut: tiem is not in minimal, allowed: cni, pressure, time",
            id="what is not in it cannot be left out",
        ),
        pytest.param(
            f"{POD}profile: {{name: minimal, leaveOut: [cni, pressure, time]}}", "checks: missing, ", id="none is left"
        ),
        pytest.param(
            f"{POD}profile: minimal\nchecks: [{{name: a, cni: {{}}}}, {{name: b, cny: {{}}}}]",
            "checks[1].cny: unknown key, ",
            id="errors name the place in the file",
        ),
        pytest.param(f"{POD}profile: minimal\nchecks: [{{name: a}}]", "checks[0]: has no kind, ", id="no kind"),
        pytest.param(f"{POD}profile: minimal\nchecks: {{}}", "checks: is an empty mapping", id="no list of checks"),
        pytest.param(f"{POD}profile: minimal\nchecks: [{{name: [a]}}]", "checks[0].name: is a list", id="no name"),
        pytest.param(
            "mode: kubelet\nprofile: minimal\nkubelet: {nodeName: a, podCIDR: 127.20.1.0/24, rootDir: /x}",
            "profile: not for mode kubelet, ",
            id="mode kubelet",
        ),
    ],
)
def test_what_is_refused(text: str, expected: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parsed(text)
    assert str(refused.value).startswith(expected), refused.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"{POD}profile: default", "cni runtime filesystem pod-network", id="in a pod"),
        pytest.param(
            f"{NODE}profile: default", "cni runtime filesystem connection-tables kernel-log", id="as a service"
        ),
    ],
)
def test_the_default_list_closes_for_these_and_warns_for_the_rest(text: str, expected: str) -> None:
    assert expected == " ".join(check.name for check in parsed(text).checks if check.severity == "gate")


def test_the_names_that_may_close_are_those_of_the_first_release() -> None:
    """A name that is added here would close nodes by an upgrade. A new check of a list only warns until the settings
    name it with `severity: gate`."""
    first = {"cni", "runtime", "filesystem", "pod-network", "connection-tables", "kernel-log", "gpu", "pressure"}
    assert first == MAY_CLOSE


@pytest.mark.parametrize(
    ("name", "check", "severity"),
    [
        pytest.param("cni", {"cni": {}}, None, id="of the first release"),
        pytest.param("pressure", {"pressure": {}, "severity": "warn"}, "warn", id="of the first release, which warns"),
        pytest.param("new", {"link": {}}, "warn", id="unknown"),
        pytest.param("new", {"link": {}, "severity": "gate"}, "warn", id="unknown, whatever the list says"),
    ],
)
def test_a_check_that_joins_a_list_later_only_warns(name: str, check: dict[str, Any], severity: str | None) -> None:
    found = cautious(name, check)
    assert (severity, check.keys()) == (
        found.get("severity"),
        found.keys() - {"severity"} | (check.keys() & {"severity"}),
    )


def test_a_check_that_joined_later_closes_once_the_settings_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.checks.profiles.MAY_CLOSE", MAY_CLOSE - {"pod-network"})
    text = f"{POD}profile: default"
    named = [f"{text}\nchecks: [{{name: pod-network, {key}}}]" for key in ("severity: gate", "periodSeconds: 5")]
    assert ["warn", "gate", "warn"] == [check_of(one, "pod-network")[1] for one in (text, *named)]


@pytest.mark.parametrize(
    ("profile", "mode", "expected"),
    [
        pytest.param("default", "pod", "certificates connection-tables kernel-log", id="in a pod"),
        pytest.param("default", "node", "pod-network dns", id="as a service"),
        pytest.param("minimal", "pod", "", id="minimal needs nothing more"),
        pytest.param("", "pod", "", id="no list"),
    ],
)
def test_what_an_agent_of_a_mode_cannot_run_of_a_list(profile: str, mode: str, expected: str) -> None:
    assert expected == " ".join(not_run(profile, mode))


def test_a_runtime_is_looked_for_at_the_sockets_of_several(tmp_path: Path) -> None:
    asked: list[str] = []
    sockets = (tmp_path / "containerd.sock", tmp_path / "crio.sock")

    def connect(socket: str, _deadline_s: float) -> Runtime:
        asked.append(socket)
        return Runtime(RuntimeStatus(READY))

    check = Check(Settings(socket=tuple(map(str, sockets))), 5.0, connect)  # type: ignore[arg-type]
    assert CheckState.WARNED is check().state, "none was ever there: nothing to look at closes no node"
    sockets[1].touch()
    assert CheckState.PASSED is check().state
    sockets[1].unlink()
    check()
    assert [str(sockets[1])] == asked, "what was there is asked from then on"
