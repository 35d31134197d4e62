"""A kind of check is a file and a row: from YAML to the node's health, its errors and its line in the documents."""

import importlib.util
import os
import re
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from agent import settings
from agent.checks import catalogue
from agent.checks.catalogue import KINDS, Kind, check_spec
from agent.checks.engine import CheckEngine
from agent.checks.health import log_text
from agent.checks.state import CheckState, Finding, Severity, Thresholds
from component.settings import Section
from tools.kit.waiting import wait_until

DOCUMENT = Path(__file__).resolve().parents[3] / "docs/configuration.md"


class DiskSettings(Section, frozen=True):
    path: str
    min_free_percent: int = 10


class DiskCheck:
    def __init__(self, settings: DiskSettings, timeout_s: float) -> None:
        self._settings = settings
        self._timeout_s = timeout_s

    def __call__(self) -> Finding:
        wanted = self._settings.min_free_percent
        return Finding(CheckState.FAILED, f"{self._settings.path}: 3 % free of {wanted} %, {self._timeout_s:g} s")


@pytest.fixture
def with_disk(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """agent.settings as it is where the catalogue has one row more."""
    monkeypatch.setitem(catalogue.KINDS, "disk", Kind(DiskSettings, DiskCheck, "enough is free"))
    spec = importlib.util.find_spec("agent.settings")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parse(module: ModuleType, check: str) -> settings.Settings:
    return module.parse(f"mode: pod\nchecks: [{{name: x, {check}}}]\n".encode(), {})


def test_a_new_kind_is_one_file_and_one_row(with_disk: ModuleType) -> None:
    loaded = parse(with_disk, "disk: {path: /var, minFreePercent: 5}, timeoutSeconds: 7")
    engine = CheckEngine([check_spec(check) for check in loaded.checks])
    engine.start()
    try:
        wait_until(lambda: engine.node_health().reason == "CheckFailed")
        assert log_text(engine.node_health().problems) == "x: failed: /var: 3 % free of 5 %, 7 s"
    finally:
        engine.stop()


ALL = ", ".join([*KINDS, "disk"])


def test_what_the_kernel_s_log_has_told_is_kept_beside_the_states_unless_the_settings_say_where(tmp_path: Path) -> None:
    """Else a restart forgets it as soon as the line has left the kernel's buffer."""
    os.mkfifo(tmp_path / "kmsg")
    (tmp_path / "boot_id").write_text("5f1b")
    log = {"path": str(tmp_path / "kmsg"), "bootId": str(tmp_path / "boot_id")}
    for given in (
        {"name": "a", "kernelLog": log},
        {"name": "b", "kernelLog": {**log, "positionFile": f"{tmp_path}/own"}},
    ):
        spec = check_spec(msgspec.convert(given, settings.Check), state_file=f"{tmp_path}/checks.json")
        assert CheckState.PASSED is spec.run().state
        spec.close()
    assert {"kmsg", "boot_id", "checks.json.a", "own"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        pytest.param("severity: gate", f"checks[0]: has no kind, allowed: one of {ALL}", id="no kind"),
        pytest.param("disk: null", f"checks[0]: has no kind, allowed: one of {ALL}", id="a kind that is null"),
        pytest.param(
            "disk: {path: /}, cni: {}",
            f"checks[0]: has cni and disk, allowed: one of {ALL}",
            id="two kinds",
        ),
        pytest.param("disks: {path: /}", "checks[0].disks: unknown key, allowed: ", id="no such kind"),
        pytest.param("disk: {}", "checks[0].disk.path: missing", id="a key of the kind is missing"),
        pytest.param("disk: {pth: /}", "checks[0].disk.pth: unknown key, allowed: ", id="no such key of the kind"),
        pytest.param("disk: []", "checks[0].disk: is an empty list, allowed: ", id="a list"),
        pytest.param("disk: {path: 1}", "checks[0].disk.path: is 1, allowed: ", id="another type"),
    ],
)
def test_errors_name_the_new_kind(with_disk: ModuleType, check: str, expected: str) -> None:
    with pytest.raises(settings.SettingsError) as caught:
        parse(with_disk, check)
    assert str(caught.value).startswith(expected)


def test_zeros_are_the_defaults_of_a_probe() -> None:
    zeros = {"periodSeconds": 0, "timeoutSeconds": 0, "successThreshold": 0, "failureThreshold": 0}
    spec = check_spec(msgspec.convert({"name": "x", "timeSync": {}, "severity": "warn", **zeros}, settings.Check))
    assert (0, 10, 1, Thresholds(1, 3), Severity.WARN) == (
        spec.initial_delay_s,
        spec.period_s,
        spec.timeout_s,
        spec.thresholds,
        spec.severity,
    )


@pytest.mark.parametrize(
    ("check", "expected_s"),
    [
        pytest.param({"timeSync": {}}, 1, id="a probe's second"),
        pytest.param({"cni": {}}, 5, id="a child process under load"),
        pytest.param({"runtime": {}}, 5, id="a runtime under load"),
        pytest.param({"filesystem": {}, "timeoutSeconds": 0}, 5, id="a disk under load"),
        pytest.param({"pressure": {"folder": "/a"}}, 5, id="and what syncs there"),
        pytest.param({"gpu": {}}, 5, id="a bus whose devices sleep"),
        pytest.param({"filesystem": {}, "timeoutSeconds": 1}, 1, id="what is given counts"),
        pytest.param({"runtime": {}, "periodSeconds": 2}, 2, id="but no more than the period"),
        pytest.param({"runtime": {}, "periodSeconds": 2, "timeoutSeconds": 5}, 5, id="unless that is given"),
    ],
)
def test_what_is_slow_under_load_gets_more_time(check: dict[str, object], expected_s: float) -> None:
    assert expected_s == check_spec(msgspec.convert({"name": "x", **check}, settings.Check)).timeout_s


@pytest.mark.parametrize(
    ("check", "expected_s"),
    [
        pytest.param({"timeSync": {}}, 1, id="one look"),
        pytest.param({"cni": {}}, 10, id="the first run looks anew once folders are followed"),
        pytest.param({"certificates": {}, "timeoutSeconds": 3}, 6, id="by what is given"),
        pytest.param({"podAddresses": {}}, 10, id="at files, and at the runtime's list"),
        pytest.param({"runtime": {}}, 30, id="call after call"),
    ],
)
def test_a_run_of_several_looks_is_late_after_the_time_of_all(check: dict[str, object], expected_s: float) -> None:
    assert expected_s == check_spec(msgspec.convert({"name": "x", **check}, settings.Check)).limit_s


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, 360, id="an hour of runs each ten seconds"),
        pytest.param({"unknownLimitSeconds": 0}, 360, id="zero is the default"),
        pytest.param({"unknownLimitSeconds": 60, "periodSeconds": 7}, 8, id="whole runs within the limit"),
        pytest.param({"unknownLimitSeconds": 1, "periodSeconds": 600}, 1, id="at least one"),
        pytest.param({"unknown": "close", "unknownLimitSeconds": 60}, 0, id="none under the policy close"),
    ],
)
def test_for_how_many_runs_an_unknown_check_keeps_its_node_open(given: dict[str, object], expected: int) -> None:
    spec = check_spec(msgspec.convert({"name": "x", "cni": {}, **given}, settings.Check))
    assert expected == spec.thresholds.keep_runs


def test_the_table_of_the_documents_is_the_catalogue() -> None:
    rows = [
        (kind, f"`{'`, `'.join(field.encode_name for field in msgspec.structs.fields(row.settings))}`", row.doc)
        for kind, row in KINDS.items()
    ]
    of_the_agent = DOCUMENT.read_text().partition("\n## Agent, mode `pod`\n")[2]
    assert rows == re.findall(r"^\| `(\w+)` \| (`.*`) \| (.*) \|$", of_the_agent, re.MULTILINE)


def test_each_file_of_builtin_has_its_row() -> None:
    files = {file.stem for file in Path(catalogue.__file__).with_name("builtin").glob("[!_]*.py")}
    assert files == {row.settings.__module__.rpartition(".")[2] for row in KINDS.values()}
