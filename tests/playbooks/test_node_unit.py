"""The unit of the agent as a service: what keeps it alive, what it may take, and what it may not do."""

import pytest

from tests.playbooks.test_node_plugin import check, settings_of, unit

ALIVE = {
    "Type": "notify",
    "NotifyAccess": "main",
    "Restart": "always",
    "RestartSec": "2",
    "StartLimitIntervalSec": "0",
    "TimeoutStartSec": "60",
    "TimeoutStopSec": "15",
    "WatchdogSec": "30",
    "OOMScoreAdjust": "-900",
    "OOMPolicy": "continue",
    "RuntimeDirectory": "readygate-node",
    "RuntimeDirectoryMode": "0700",
    "RuntimeDirectoryPreserve": "restart",
    "WantedBy": "multi-user.target",
}
LIMITED = {"MemoryMax": "128M", "CPUQuota": "50%", "TasksMax": "128"}
SHUT_IN = {
    "RootDirectory": "/opt/readygate/node/images/0123456789ab",
    "MountAPIVFS": "yes",
    "CapabilityBoundingSet": "",
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
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
# Which checks look at what of the host is held by the tests of what they state.
OF_THE_HOST = {"Description", "After", "ExecStart", "ExecReload", "Environment", "BindReadOnlyPaths"}


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return unit()


@pytest.mark.parametrize(("key", "expected"), [pytest.param(*line, id=line[0]) for line in ALIVE.items()])
def test_it_is_kept_alive(lines: list[str], key: str, expected: str) -> None:
    assert [expected] == settings_of(lines, key)


@pytest.mark.parametrize(("key", "expected"), [pytest.param(*line, id=line[0]) for line in LIMITED.items()])
def test_it_may_take_so_much_and_no_more(lines: list[str], key: str, expected: str) -> None:
    assert [expected] == settings_of(lines, key)


@pytest.mark.parametrize(("key", "expected"), [pytest.param(*line, id=line[0]) for line in SHUT_IN.items()])
def test_without_checks_that_state_more_it_is_shut_in(lines: list[str], key: str, expected: str) -> None:
    assert [expected] == settings_of(lines, key)


def test_there_is_no_line_that_no_test_asks_for(lines: list[str]) -> None:
    keys = {line.partition("=")[0] for line in lines if "=" in line and not line.startswith("#")}
    assert ALIVE.keys() | LIMITED.keys() | SHUT_IN.keys() | OF_THE_HOST == keys


def test_its_limits_are_those_of_the_inventory() -> None:
    given = {
        "readygate_node_memory_max": "256M",
        "readygate_node_cpu_quota": "100%",
        "readygate_node_tasks_max": 300,
    }
    lines = unit(**given)
    assert [["256M"], ["100%"], ["300"]] == [settings_of(lines, key) for key in LIMITED]


# What a check states in devices, processes and the clock: `yes` becomes `no` or goes, and nothing else does.
OPENED = {
    "kernelLog": {"CapabilityBoundingSet", "PrivateDevices", "ProtectKernelLogs", "ProtectProc"},
    "podNetwork": {"CapabilityBoundingSet", "RestrictNamespaces"},
    "timeSync": {"ProtectClock", "SystemCallFilter"},
}


@pytest.mark.parametrize(("kind", "opened"), [pytest.param(*line, id=line[0]) for line in OPENED.items()])
def test_a_check_opens_what_it_states_and_nothing_beside_it(kind: str, opened: set[str]) -> None:
    lines = unit(readygate_node_checks=[check(kind)])
    assert opened == {key for key, value in SHUT_IN.items() if settings_of(lines, key) != [value]}


def test_of_namespaces_it_may_enter_those_of_networks_alone() -> None:
    lines = unit(readygate_node_checks=[check("podNetwork")])
    assert ["CAP_SYS_ADMIN"] == settings_of(lines, "CapabilityBoundingSet")
    assert ["net"] == settings_of(lines, "RestrictNamespaces")
    assert "-/run/netns:/run/netns" in settings_of(lines, "BindReadOnlyPaths")
