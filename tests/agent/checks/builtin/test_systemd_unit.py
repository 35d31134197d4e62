"""The check `systemdUnit`: what is made of a unit's state, how restarts are counted, and the bus."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.checks.builtin.systemd_unit import Check, Restarts, Settings, Unit, counted, judged
from agent.checks.dbus_messages import unit_path
from agent.checks.state import CheckState, Finding
from component.settings import SettingsError, convert
from tools.fakes.system_bus import FakeBus
from tools.kit.cases import cases

NOW_S = 1000.0
UNIT = "a.service"


def found(unit: Unit, restarts: int = 0, **more: object) -> tuple[str, str]:
    finding = judged({UNIT: unit}, {UNIT: restarts}, NOW_S, Settings(units=(UNIT,), **more))
    return str(finding.state), finding.output.removeprefix(f"{UNIT} ")


@cases(
    "unit, expected",
    ("active", Unit(active="active", sub="running"), ("passed", "is active (running)")),
    ("of one run, done", Unit(active="active", sub="exited"), ("passed", "is active (exited)")),
    ("that reads its configuration again", Unit(active="reloading", sub="reload"), ("passed", "is reloading (reload)")),
    ("of systemd 254 and later", Unit(active="refreshing", sub="refreshing"), ("passed", "is refreshing")),
    ("failed", Unit(active="failed", sub="failed", result="oom-kill"), ("failed", "has failed (oom-kill)")),
    ("failed, of another type", Unit(active="failed", sub="failed"), ("failed", "has failed")),
    (
        "crashed, before its restart",
        Unit(active="activating", sub="auto-restart", result="exit-code"),
        ("failed", "has crashed (exit-code) and waits for its restart"),
    ),
    (
        "NVSentinel#1380: starting, as after a boot or a restart by an operator",
        Unit(active="activating", sub="start", began_s=NOW_S - 90),
        ("warned", "is activating (start)"),
    ),
    (
        "node-problem-detector#444: starting again and again, never active",
        Unit(active="activating", sub="start-pre", began_s=NOW_S - 91),
        ("failed", "has been starting for more than 90 s"),
    ),
    ("stopping", Unit(active="deactivating", sub="stop-sigterm"), ("warned", "is deactivating (stop-sigterm)")),
    ("stopped", Unit(active="inactive", sub="dead"), ("failed", "is inactive (dead)")),
    ("under maintenance", Unit(active="maintenance", sub="cleaning"), ("warned", "is maintenance (cleaning)")),
    ("in a state of a later systemd", Unit(active="dreaming", sub="dreaming"), ("warned", "is dreaming")),
    (
        "NVSentinel#1380: that the node does not have",
        Unit(load="not-found", active="inactive", sub="dead"),
        ("not applicable", "is not there"),
    ),
    (
        "that was uninstalled after it failed",
        Unit(load="not-found", active="failed", sub="failed"),
        ("not applicable", "is not there"),
    ),
    (
        "uninstalled while it runs",
        Unit(load="not-found", active="active", sub="running"),
        ("passed", "is active (running)"),
    ),
    ("turned off for good", Unit(load="masked", active="inactive", sub="dead"), ("not applicable", "is masked")),
)
def test_a_unit_that_is(unit: Unit, expected: tuple[str, str]) -> None:
    assert expected == found(unit)


def test_a_stopped_unit_passes_where_it_must_only_not_have_failed() -> None:
    """SUSE/ha-sap-terraform-deployments#791: an operator stops a unit for maintenance."""
    stopped, crashed = Unit(active="inactive", sub="dead"), Unit(active="failed", sub="failed", result="signal")
    assert ("passed", "is inactive (dead)") == found(stopped, need="notFailed")
    assert ("failed", "has failed (signal)") == found(crashed, need="notFailed")


@cases(
    "load, expected",
    ("that is missing", "not-found", ("failed", "is not there")),
    ("that is masked", "masked", ("failed", "is masked")),
)
def test_a_unit_fails_where_it_must_be_there(load: str, expected: tuple[str, str]) -> None:
    assert expected == found(Unit(load=load, active="inactive", sub="dead"), absent="fail")


@cases(
    "restarts, most, expected",
    ("none", 0, 3, ("passed", "is active (running)")),
    ("as many as may be", 3, 3, ("passed", "is active (running)")),
    ("one more", 4, 3, ("failed", "is active (running), 4 restarts in 600 s, at most 3")),
    ("none may be", 1, 0, ("failed", "is active (running), 1 restarts in 600 s, at most 0")),
    ("not looked at", 99, None, ("passed", "is active (running)")),
)
def test_restarts_are_judged(restarts: int, most: int | None, expected: tuple[str, str]) -> None:
    assert expected == found(Unit(active="active", sub="running"), restarts, max_restarts=most)


def test_the_worst_unit_is_the_finding() -> None:
    units = {
        "a.service": Unit(active="active", sub="running"),
        "b.service": Unit(active="failed", sub="failed", result="timeout"),
        "c.service": Unit(active="deactivating", sub="stop"),
        "d.service": Unit(load="not-found", active="inactive"),
    }
    settings = Settings(units=tuple(units))
    assert Finding(CheckState.FAILED, "b.service has failed (timeout)") == judged(units, {}, NOW_S, settings)
    del units["b.service"]
    assert Finding(CheckState.WARNED, "c.service is deactivating (stop)") == judged(units, {}, NOW_S, settings)
    del units["c.service"]
    both = "a.service is active (running); d.service is not there"
    assert Finding(CheckState.PASSED, both) == judged(units, {}, NOW_S, settings)


def test_what_happened_before_the_first_run_does_not_count() -> None:
    assert 0 == counted(None, 17, 5.0, 600.0).seen


def test_a_manual_restart_sets_the_count_back_and_is_none() -> None:
    """node-problem-detector#1258, NVSentinel#1382: `systemctl restart` is no crash."""
    known = counted(Restarts(2), 0, 10.0, 600.0)
    assert Restarts(0) == known
    assert 1 == counted(known, 1, 20.0, 600.0).seen


def test_restarts_are_forgotten_when_their_window_is_over() -> None:
    known = counted(Restarts(0), 3, 10.0, 600.0)
    assert (3, 3, 0) == (known.seen, counted(known, 3, 609.9, 600.0).seen, counted(known, 3, 610.0, 600.0).seen)


def test_drawn_crashes_and_restarts_by_hand_are_told_apart(seed: int) -> None:
    """The count has as many crashes as there were in the window, but for those before a restart by hand in one step."""
    draw = random.Random(seed)
    for _ in range(200):
        count, known, crashes = draw.randrange(5), None, list[tuple[float, int]]()
        for step in range(draw.randrange(1, 60)):
            at_s, crashed = 10.0 * step, draw.choice([0, 0, 0, 1, 2])
            if draw.random() < 0.1:  # by hand, then crashes again
                count = 0 if crashed < count else count
                crashed = crashed if count == 0 else 0
            count += crashed
            if known is not None and crashed:
                crashes.append((at_s, crashed))
            known = counted(known, count, at_s, 100.0)
            assert sum(many for when, many in crashes if at_s - when < 100.0) == known.seen
            assert len(known.times_s) <= 10


def properties(unit: str = UNIT, **more: object) -> dict[tuple[str, str], object]:
    values = {
        "LoadState": "loaded", "ActiveState": "active", "SubState": "running", "InactiveExitTimestampMonotonic": 5,
        "Result": "success", "NRestarts": 0,
    } | more  # fmt: skip
    return {(unit_path(unit).rpartition("/")[2], name): value for name, value in values.items() if value is not None}


Serve = Callable[..., FakeBus]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    buses = list[FakeBus]()

    def begin(given: dict[tuple[str, str], object], **how: bool) -> FakeBus:
        buses.append(FakeBus(tmp_path / "bus", given, **how))
        return buses[-1]

    yield begin
    for bus in buses:
        bus.stop()


def check(tmp_path: Path, timeout_s: float = 20.0, **more: object) -> Check:
    settings = Settings(**({"units": (UNIT,), "socket": str(tmp_path / "bus")} | more))
    return Check(settings, timeout_s, monotonic=lambda: NOW_S)


def test_systemd_is_asked_over_the_bus(tmp_path: Path, serve: Serve) -> None:
    serve(properties())
    assert Finding(CheckState.PASSED, f"{UNIT} is active (running)") == check(tmp_path)()


def test_restarts_fail_and_the_way_back_is_a_run_that_counts_fewer(tmp_path: Path, serve: Serve) -> None:
    bus, now = serve(properties()), [0.0]
    made = Check(Settings(units=(UNIT,), socket=str(tmp_path / "bus"), max_restarts=2), 20.0, monotonic=lambda: now[0])
    assert CheckState.PASSED is made().state
    bus.properties.update(properties(NRestarts=3))
    failed = Finding(CheckState.FAILED, f"{UNIT} is active (running), 3 restarts in 600 s, at most 2")
    assert failed == made()
    now[0] = 600.0
    assert CheckState.PASSED is made().state


def test_many_units_are_asked_without_too_many_calls_at_once(tmp_path: Path, serve: Serve) -> None:
    """dbus-daemon breaks off a connection with more than 128 calls without an answer."""
    units = tuple(f"u{n}.service" for n in range(32))
    serve({key: value for unit in units for key, value in properties(unit).items()})
    assert CheckState.PASSED is check(tmp_path, units=units)().state


@cases(
    "lacking, unit",
    ("a version of systemd without NRestarts", ("NRestarts",), UNIT),
    ("a unit that is no service", ("NRestarts", "Result"), "a.timer"),
)
def test_what_systemd_does_not_count_is_not_judged(
    tmp_path: Path, serve: Serve, lacking: tuple[str, ...], unit: str
) -> None:
    serve(properties(unit, **dict.fromkeys(lacking)))
    assert Finding(CheckState.PASSED, f"{unit} is active (running)") == check(tmp_path, units=(unit,))()


NEEDS = ": needs the system bus, with systemd behind it"


@cases(
    "given, how, words",
    (
        "no right to read",
        properties(ActiveState=PermissionError()),
        {},
        "{}: a.service: org.freedesktop.DBus.Error.AccessDenied",
    ),
    ("a bus that knows nobody", {}, {"refuses": True}, "{} refuses this user: REJECTED EXTERNAL"),
    ("no systemd", {}, {}, "systemd does not say how a.service is"),
)
def test_no_answer_is_unknown(
    tmp_path: Path, serve: Serve, given: dict[tuple[str, str], object], how: dict[str, bool], words: str
) -> None:
    """node-problem-detector#704: no answer of systemctl was taken for a unit that is not healthy."""
    serve(given, **how)
    assert Finding(CheckState.UNKNOWN, words.format(tmp_path / "bus") + NEEDS) == check(tmp_path)()


def test_a_bus_that_hangs_is_unknown(tmp_path: Path, serve: Serve) -> None:
    serve({}, silent=True)
    assert Finding(CheckState.UNKNOWN, f"{tmp_path}/bus gives no answer (too slow){NEEDS}") == check(tmp_path, 0.5)()


def test_no_bus_is_unknown(tmp_path: Path) -> None:
    words = f"{tmp_path}/bus cannot be reached (No such file or directory){NEEDS}"
    assert Finding(CheckState.UNKNOWN, words) == check(tmp_path)()


@cases(
    "given, rule",
    ("no unit", {"units": []}, "units: is an empty list, allowed: a list of 1 to 32 units"),
    ("none named", {}, "units: missing, allowed: a list of 1 to 32 units"),
    (
        "no type",
        {"units": ["chronyd"]},
        'units[0]: is the text "chronyd", allowed: a unit with its type, as chronyd.service',
    ),
    ("another need", {"units": [UNIT], "need": "up"}, 'need: is the text "up", allowed: active, notFailed'),
)
def test_what_is_wrong_in_the_settings_is_named(given: dict[str, object], rule: str) -> None:
    with pytest.raises(SettingsError) as caught:
        convert(given, Settings)
    assert rule == str(caught.value)
