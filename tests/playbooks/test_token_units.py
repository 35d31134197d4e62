"""The units that renew the static pod's token: what they run and when, what they may do, and that undo removes them."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.playbooks.rendering import ADMIN_SERVER, ROLES, objects, render
from tests.playbooks.test_node_plugin import settings_of

ROLE = "readygate_extender"
STATIC = {"readygate_extender_form": "static"}
FOLDER = "/etc/kubernetes/readygate-extender"
UNITS = "/etc/systemd/system/{{ __readygate_extender_token_unit }}"
PYTHON = {"ansible_facts": {"python": {"executable": "/usr/libexec/platform-python"}, "nodename": "cp-1"}}
RUNS = {
    "Type": "oneshot",
    "TimeoutStartSec": "300",
    "StandardOutput": "null",
    "StandardError": "journal",  # otherwise it goes where the output goes
    "SyslogLevel": "notice",
    "LogLevelMax": "notice",
}
SANDBOX = {
    "CapabilityBoundingSet": "CAP_CHOWN CAP_DAC_READ_SEARCH",
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ReadWritePaths": f"{FOLDER}/credentials",
    "ProtectHome": "read-only",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "ProtectClock": "yes",
    "ProtectControlGroups": "yes",
    "ProtectHostname": "yes",
    "ProtectKernelLogs": "yes",
    "ProtectKernelModules": "yes",
    "ProtectKernelTunables": "yes",
    "ProtectProc": "invisible",
    "KeyringMode": "private",
    "LockPersonality": "yes",
    "MemoryDenyWriteExecute": "yes",
    "RemoveIPC": "yes",
    "RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "RestrictNamespaces": "yes",
    "RestrictRealtime": "yes",
    "RestrictSUIDSGID": "yes",
    "SystemCallArchitectures": "native",
    "SystemCallFilter": "@system-service",
    "SystemCallErrorNumber": "EPERM",
    "UMask": "0077",
}
TIMER = {"OnBootSec": "30", "OnUnitInactiveSec": "60", "AccuracySec": "5", "WantedBy": "timers.target"}


def unit(kind: str, **given: Any) -> list[str]:
    value = render(ROLE, STATIC | ADMIN_SERVER | PYTHON | given)
    return str(value(f"lookup('ansible.builtin.template', 'token.{kind}.j2')")).splitlines()


def tasks(file: str) -> dict[str, dict[str, Any]]:
    return {task["name"]: task for task in yaml.safe_load((ROLES / ROLE / "tasks" / f"{file}.yml").read_text())}


@pytest.mark.parametrize(("key", "expected"), [pytest.param(*line, id=line[0]) for line in (RUNS | SANDBOX).items()])
def test_the_service_has_this_setting(key: str, expected: str) -> None:
    assert [expected] == settings_of(unit("service"), key)


@pytest.mark.parametrize(("key", "expected"), [pytest.param(*line, id=line[0]) for line in TIMER.items()])
def test_the_timer_has_this_setting(key: str, expected: str) -> None:
    assert [expected] == settings_of(unit("timer"), key)


def test_no_unit_has_a_line_that_no_test_names() -> None:
    both = [*unit("service"), *unit("timer")]
    keys = {line.partition("=")[0] for line in both if "=" in line and not line.startswith("#")}
    assert keys == RUNS.keys() | SANDBOX.keys() | TIMER.keys() | {"Description", "ExecStart", "Environment"}


def words(line: str) -> list[str]:
    """As systemd splits it."""
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(line)]


def test_the_service_runs_the_plays_program_when_the_token_is_due() -> None:
    (line,) = settings_of(unit("service"), "ExecStart")
    assert words(line) == [
        *("/usr/libexec/platform-python", "-I", "-B", f"{FOLDER}/credentials.py"),
        *("--kubeconfig", "/etc/kubernetes/admin.conf", "--folder", f"{FOLDER}/credentials", "--group", "69376"),
        *("--namespace", "readygate-system", "--account", "readygate-extender", "--hours", "24", "--when-due"),
    ]
    value = render(ROLE, ADMIN_SERVER | PYTHON | {"readygate_extender_tls_secret": "tls"})
    argv = tasks("static")["Static | Renew the credentials"]["ansible.builtin.command"]["argv"]
    assert [*words(line)[:-1], "--tls-secret", "tls", "--tls-folder", f"{FOLDER}/tls"] == value(argv.strip()[2:-2])


@pytest.mark.parametrize("path", ["/root/my admin.conf", "/root/100%.conf", "/root/$HOME.conf", '/root/"x".conf'])
def test_a_kubeconfig_of_any_name_reaches_the_program(path: str) -> None:
    (line,) = settings_of(unit("service", readygate_extender_kubeconfig=path), "ExecStart")
    assert words(line)[5] == path


def test_the_service_finds_kubectl_where_the_play_does() -> None:
    (line,) = settings_of(unit("service", readygate_bin_dir="/opt/k"), "Environment")
    assert words(line) == ["PATH=/opt/k:/usr/local/bin:/usr/bin:/bin:/opt/bin", "KUBERC=off"]


def test_no_role_of_the_extender_lets_its_token_renew_itself() -> None:
    """A stolen token ends."""
    roles = [one for (kind, *_), one in objects(ROLE, STATIC | ADMIN_SERVER).items() if kind in ("Role", "ClusterRole")]
    resources = {resource for role in roles for rule in role["rules"] for resource in rule["resources"]}
    assert "pods" in resources
    assert not {"serviceaccounts", "serviceaccounts/token", "*"} & resources


def test_the_token_is_there_before_the_timer_and_the_timer_before_the_manifest() -> None:
    names = list(tasks("static"))
    order = ["Renew the credentials", "Start the timer that renews the token", "Put the manifest in place"]
    places = [names.index(f"Static | {name}") for name in order]
    assert places == sorted(places)


def test_a_killed_plays_units_are_started_by_the_next_play() -> None:
    """It reads the units in any case, not only where it has written them."""
    task = tasks("static")["Static | Start the timer that renews the token"]
    assert task["ansible.builtin.systemd"] == {
        "name": "{{ __readygate_extender_token_unit }}.timer",
        "daemon_reload": True,
        "enabled": True,
        "state": "started",
    }
    assert task["when"] == "not ansible_check_mode"


def test_undo_ends_the_timer_before_it_removes_the_units_and_the_folder_last() -> None:
    absent = tasks("static_absent")
    names = list(absent)
    ends, removes = "Static absent | End the timer that renews the token", "Static absent | Remove its files"
    assert names.index(ends) < names.index("Static absent | Reset a failed run of the unit") < names.index(removes)
    assert absent[ends]["ansible.builtin.command"]["argv"][:3] == ["systemctl", "disable", "--now"]
    removed = absent[removes]["loop"]
    assert {f"{UNITS}.timer", f"{UNITS}.service"} < set(removed)
    assert removed[-1] == "{{ __readygate_extender_folder }}"


def test_both_ways_back_take_the_units_away() -> None:
    for file in ("uninstall", "settle_replaced"):
        assert "static_absent.yml" in Path(ROLES / ROLE / "tasks" / f"{file}.yml").read_text()
