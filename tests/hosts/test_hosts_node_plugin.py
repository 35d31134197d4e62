"""The agent as a service of systemd: installed by the playbook on real hosts, upgraded, undone, and taken off again."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from images.build import readygate_image
from tests.charts.rendering import ROOT
from tests.hosts.deployment.conftest import ansible_for
from tests.hosts.deployment.playbook import Ansible, Run
from tests.playbooks.archives import with_another_agent
from tools.testbed.hosts.hosts import Hosts

INSTALL, REMOVE = "node-plugin.yml", "node-plugin-uninstall.yml"
# All that the play could leave: where it writes, units of every kind, who there is, and files where checks write.
TRACES = (
    "ls -A /opt; find /opt/readygate /etc/systemd /run/systemd/system /run/readygate* /etc/passwd /etc/group"
    " -printf '%p %y %s %l\\n' 2>/dev/null | sort;"
    " find /var/lib/kubelet -maxdepth 1 ! -name '*_pods_state' -printf '%p %y\\n' | sort;"
    " systemctl list-units --all --plain --no-legend 'readygate*'"
)
STATE = "systemctl show readygate-node --property=ActiveState,UnitFileState,StatusText,MainPID,FragmentPath"
RELOADED = (
    "systemctl reload readygate-node; "
    "for i in $(seq 1000); do journalctl -u readygate-node -o cat | grep 'read again' && break; sleep 0.2; done"
)
UNITS = "cat /etc/systemd/system/readygate-node.service"
# As docs/node-plugin.md has it, with more patience for the start and less for what comes after it.
(DOCUMENTED,) = re.findall(
    r"^(cd /opt/readygate/node && .*)$", (ROOT / "docs/node-plugin.md").read_text(), re.MULTILINE
)
BACK = DOCUMENTED.replace(" 60 30", " 180 2")
DOES_NOT_START = '#!/bin/sh\n[ "$3" = --check ] && exit 0\necho this agent does not start >&2\nexit 3\n'


@dataclass(frozen=True)
class Story:
    """The runs of the playbooks in their order, and what the hosts showed after each."""

    before: dict[str, str]
    installed: Run
    state: dict[str, str]
    newer: Run
    older: dict[str, str]
    by_hand: dict[str, str]
    broken: Run
    broken_state: dict[str, str]
    exposure: str
    readyz: str
    reloaded: str
    removed: Run
    after: dict[str, str]


def per_host(value: object, name: str, otherwise: object) -> str:
    """A variable that one host has another value of, given on the command line."""
    return f"{{{{ {otherwise!r} if inventory_hostname == {name!r} else {value!r} }}}}"


@dataclass(frozen=True)
class Plugin:
    """What each run of the playbooks takes."""

    hosts: Hosts
    ansible: Ansible
    folder: Path
    archive: Path
    given: dict[str, Any]

    def on_each(self, command: str) -> dict[str, str]:
        return {name: self.hosts.ssh(name, command, timeout_s=300.0, check=False).stdout for name in self.hosts.names}


@pytest.fixture(scope="module")
def plugin(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Plugin:
    folder = tmp_path_factory.mktemp("node-plugin")
    archive = readygate_image(hosts.progress)
    given: dict[str, Any] = {
        "readygate_node_archives": [str(archive)],
        "readygate_node_serial": ["100%"],
        "readygate_node_max_failed_percent": 100,
        "readygate_node_min_ready_seconds": 2,
        "readygate_node_ready_timeout_seconds": 180,
        "readygate_node_check_profile": "",  # what the machine of the tests says of its clock is not its matter
        "readygate_node_checks": [{"name": "disk", "filesystem": {"mounts": ["/host/var/lib/kubelet"]}}],
    }
    return Plugin(hosts, ansible_for(hosts, "localhost/readygate:dev", folder, "node-plugin"), folder, archive, given)


@pytest.fixture(scope="module")
def story(plugin: Plugin) -> Story:
    ansible, given, hosts = plugin.ansible, plugin.given, plugin.hosts
    try:
        before = plugin.on_each(TRACES)
        installed = ansible.run(INSTALL, **given)
        exposure = hosts.ssh("worker-1", "systemd-analyze security --no-pager readygate-node", check=False).stdout
        readyz = hosts.ssh("worker-1", "curl --silent http://127.0.0.1:9374/readyz").stdout
        reloaded = hosts.ssh("worker-1", RELOADED, timeout_s=300.0).stdout
        older = plugin.on_each(UNITS)
        newer = ansible.run(INSTALL, readygate_node_log_level="debug", **given)
        by_hand = plugin.on_each(BACK)
        state = plugin.on_each(f"{STATE}; {UNITS}")
        broken = broken_run(plugin)
        broken_state = plugin.on_each(f"{STATE}; {UNITS}")
    finally:
        removed = ansible.run(REMOVE)
    return Story(
        before,
        installed,
        state,
        newer,
        older,
        by_hand,
        broken,
        broken_state,
        exposure,
        readyz,
        reloaded,
        removed,
        plugin.on_each(TRACES),
    )


def broken_run(plugin: Plugin) -> Run:
    """All that can go wrong at once: a host that is down, an image that does not start, one that is none of ours."""
    archive = plugin.archive
    image = with_another_agent(archive, plugin.folder / "broken.tar", DOES_NOT_START)
    no_checks: list[object] = []
    return plugin.ansible.run(
        INSTALL,
        **{
            **plugin.given,
            "readygate_node_archives": [per_host(str(archive), "worker-1", str(image))],
            "readygate_node_checks": per_host(no_checks, "worker-2", [{"name": "a", "exec": {"comand": []}}]),
        },
        ansible_host=per_host("{name}", "control-1", "nowhere.invalid").replace("'{name}'", "inventory_hostname"),
    )


def test_check_mode_shows_the_configuration_and_the_unit_and_changes_nothing(plugin):
    before = plugin.on_each(TRACES)
    rehearsed = plugin.ansible.run(INSTALL, check=True, **plugin.given)
    assert rehearsed.code == 0, rehearsed.told()
    for shown in ("+mode: node", "+RootDirectory=/opt/readygate/node/images/", "+ProtectSystem=strict"):
        assert shown in rehearsed.output
    assert before == plugin.on_each(TRACES)


def test_it_runs_on_each_host_and_says_that_its_node_is_healthy(hosts, story):
    assert story.installed.code == 0, story.installed.told()
    assert f"readygate runs in this version on {len(hosts.names)} of {len(hosts.names)} nodes" in story.installed.output
    for name, state in story.state.items():
        assert {"ActiveState=active", "UnitFileState=enabled", "StatusText=healthy: all checks passed (2)"} <= {
            *state.splitlines()
        }, name
    assert story.readyz.startswith("ok\n")


def test_its_sandbox_is_what_systemd_calls_ok(story):
    exposure = re.search(r"Overall exposure level for readygate-node.service: ([0-9.]+)", story.exposure)
    assert exposure
    print(f"systemd-analyze security: {exposure[1]}")
    assert float(exposure[1]) <= 2.0
    assert [] == re.findall(r"^✗ CapabilityBoundingSet=.*", story.exposure, re.MULTILINE), "no capability at all"


def test_systemctl_reload_makes_it_read_its_configuration_again(story):
    assert "configuration read again" in story.reloaded


def test_the_way_back_to_the_version_before_is_on_the_host(story):
    """The command of the document, after a version that did well."""
    assert story.newer.code == 0, story.newer.told()
    assert story.newer.changed > 0
    assert dict.fromkeys(story.by_hand, True) == {
        name: said.startswith("changed: healthy") for name, said in story.by_hand.items()
    }, story.by_hand
    assert dict.fromkeys(story.older, True) == {name: text in story.state[name] for name, text in story.older.items()}


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("readygate runs in this version on 0 of 3 nodes; ", id="none has the new version"),
        pytest.param("not reached, so run this again when they are back: control-1; ", id="one host is down"),
        pytest.param(
            "worker-1 (undone: it did not start; the earlier version is back. Last log line: this agent does not start",
            id="an image that does not start",
        ),
        pytest.param(
            "worker-2 (refused: nothing was changed, because the new version does not accept", id="a configuration"
        ),
        pytest.param("checks[1].exec.comand: unknown key, allowed: command", id="in the agent's own words"),
    ],
)
def test_what_went_wrong_is_told_in_one_sentence(story, said):
    assert story.broken.code != 0
    (sentence,) = re.findall(r'"msg": "(readygate runs in this version on .*)"$', story.broken.output, re.MULTILINE)
    assert said in sentence


def test_each_host_runs_the_version_from_before(story):
    """On the host whose image did not start by a new process, else by the same."""

    def without(text: str) -> str:
        return re.sub(r"MainPID=.*", "", text)

    assert {name: without(text) for name, text in story.state.items()} == {
        name: without(text) for name, text in story.broken_state.items()
    }
    assert story.state["worker-2"] == story.broken_state["worker-2"]


def test_taken_off_nothing_of_it_is_left(story):
    assert story.removed.code == 0, story.removed.told()
    assert "readygate was removed from 3 of 3 nodes" in story.removed.output
    assert story.before == story.after
