"""What site.yml refuses before any host is asked: real runs of its first plays, for hosts that are not there."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.playbooks.rendering import PLAYBOOKS

IMAGE = {"readygate_image": "registry.example/readygate:1.1"}
COMMAND = {"exec": {"command": ["true"]}}


def play(folder: Path, inventory: str, playbook: str = "site.yml") -> tuple[int, str]:
    """Exit code, and what was said of the first task that failed; else the recap."""
    (folder / "inventory.yml").write_text(inventory)
    command = [sys.executable, "-m", "ansible", "playbook", "-i", str(folder / "inventory.yml")]
    if playbook == "site.yml":
        command += ["--tags=always", "--skip-tags=end_of_run"]  # which asks a host, to let other runs begin
    environ = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": str(folder / "ansible")}
    done = subprocess.run(
        [*command, str(PLAYBOOKS / playbook)], env=environ, capture_output=True, text=True, timeout=100, check=False
    )
    failed = re.search(r"^fatal: .*", done.stdout, re.MULTILINE)
    return done.returncode, failed[0] if failed else done.stdout.partition("PLAY RECAP")[2]


def inventory(variables: dict[str, Any], group: str = "control_plane") -> str:
    hosts = {f"control-{number}": {"ansible_host": f"192.0.2.{number}"} for number in (1, 2)}
    return json.dumps({group: {"hosts": hosts, "vars": variables}})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="an empty file"),
        pytest.param(inventory(IMAGE, "control_planes"), id="a misspelled group"),
        pytest.param("control_plane:\n\thosts: {}", id="a tab"),
        pytest.param("control_plane:\nkube_control_plane:\n  hosts: {a: {}}\n", id="none in the first of both"),
    ],
)
def test_an_inventory_without_control_plane_hosts_is_an_error(tmp_path, text):
    code, told = play(tmp_path, text)
    assert code != 0
    assert "no host in the group control_plane" in told


@pytest.mark.parametrize("playbook", ["check.yml", "detach.yml", "prepare-control-plane.yml", "uninstall.yml"])
def test_no_playbook_of_the_control_plane_ends_well_for_nobody(tmp_path, playbook):
    code, told = play(tmp_path, inventory(IMAGE, "control_planes"), playbook)
    assert (True, True) == (code != 0, "no host in the group control_plane" in told), told


@pytest.mark.parametrize("playbook", ["check.yml", "prepare-control-plane.yml", "uninstall.yml"])
def test_a_misspelled_name_is_refused_by_every_playbook_but_the_emergency_exit(tmp_path, playbook):
    code, told = play(tmp_path, inventory({"readygate_scheduler_mode": "enforce"}), playbook)
    assert (True, True) == (code != 0, "no role has the variables readygate_scheduler_mode" in told), told


@pytest.mark.parametrize("group", ["control_plane", "kube_control_plane"])
def test_the_hosts_are_found_by_our_name_and_by_kubesprays(tmp_path, group):
    code, recap = play(tmp_path, inventory(IMAGE, group))
    assert code == 0
    assert ["control-1", "control-2", "localhost"] == re.findall(r"^(\S+) +: ok=[1-9]", recap, re.MULTILINE)


def steps(folder: Path, tags: str) -> dict[str, list[str]]:
    """What would be run with these tags: play -> its steps."""
    (folder / "inventory.yml").write_text(inventory(IMAGE))
    command = [sys.executable, "-m", "ansible", "playbook", "-i", str(folder / "inventory.yml"), "--list-tasks"]
    command += [f"--tags={tags}", str(PLAYBOOKS / "site.yml")]
    environ = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": str(folder / "ansible")}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100, check=True)
    plays = re.findall(r"^  play #\d+ \(.*?\): (.*?)\tTAGS.*?\n(.*?)(?:\n\n|\Z)", done.stdout, re.MULTILINE | re.DOTALL)
    return {name: re.findall(r"^      (.*?)\tTAGS", tasks, re.MULTILINE) for name, tasks in plays}


def test_a_tag_of_half_a_role_runs_whole_plays_so_none_is_without_its_arguments_and_its_lock():
    for play in yaml.safe_load((PLAYBOOKS / "site.yml").read_text()):
        tags = set(play["tags"])
        for role in ("readygate_agent", "readygate_extender", "readygate_scheduler_config"):
            assert len({role, f"{role}_install", f"{role}_configure"} & tags) in (0, 3), play["name"]
        assert tags & {"always", "readygate_agent", "readygate_extender", "readygate_scheduler_config"}, play["name"]


PLAYS = [
    pytest.param(play, id=f"{path.name}: {play['name']}")
    for path in sorted(PLAYBOOKS.glob("*.yml"))
    for play in yaml.safe_load(path.read_text())
    if "tasks" in play
]


@pytest.mark.parametrize("play", PLAYS)
def test_no_setting_of_the_controller_changes_how_hosts_are_played(play):
    """ansible.cfg may say `strategy = free`, by which no host waits for others, and `gathering = explicit`."""
    assert ("linear", True) == (play["strategy"], "gather_facts" in play)


def test_the_tag_that_only_verifies_the_scheduler_begins_nothing(tmp_path):
    seen = steps(tmp_path, "readygate_scheduler_config_verify")
    assert seen["Checks of every control plane before any change"] == ["Compare the inventory with the cluster"]
    (scheduler,) = [tasks for name, tasks in seen.items() if name.startswith("Scheduler configuration")]
    assert any("Verify" in task for task in scheduler)
    assert [] == [task for task in scheduler if "Change" in task or "Begin" in task]


def test_a_kubeconfig_that_is_not_there_is_one_sentence(tmp_path):
    """In check mode, which changes nothing before it: a host of the group that is no control plane host."""
    kubectl = tmp_path / "kubectl"
    kubectl.write_text("#!/bin/sh\necho 'error: stat /nowhere/admin.conf: no such file or directory' >&2\nexit 1\n")
    kubectl.chmod(0o755)
    local = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": sys.executable}
    variables = IMAGE | {"readygate_bin_dir": str(tmp_path), "readygate_agent_kubeconfig": "/nowhere/admin.conf"}
    (tmp_path / "hosts.yml").write_text(
        json.dumps({"control_plane": {"hosts": {"worker-1": local}, "vars": variables}})
    )
    command = [sys.executable, "-m", "ansible", "playbook", "-i", str(tmp_path / "hosts.yml"), "--check"]
    environ = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": str(tmp_path / "ansible")}
    command += ["--tags=readygate_agent", str(PLAYBOOKS / "site.yml")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100, check=False)
    (fatal,) = re.findall(r"^fatal: .*", done.stdout, re.MULTILINE)
    assert "kubectl on worker-1 cannot reach the API server with /nowhere/admin.conf: error: stat /nowhere" in fatal
    assert "The first host of the group must be a control plane host" in fatal


CHECKS = "readygate_agent_checks"
REFUSED = [
    pytest.param({}, ["readygate_image is not set"], id="no image"),
    pytest.param(
        {"readygate_imag": "x", "readygate_scheduler_mode": "enforce"},
        ["no role has the variables readygate_imag, readygate_scheduler_mode"],
        id="misspelled names, all of them at once",
    ),
    pytest.param(
        IMAGE | {"readygate_scheduler_config_mode": "enforced"},
        ["protect, enforce, got: enforced"],
        id="a value of the last role",
    ),
    *[
        pytest.param(
            IMAGE | {"readygate_extender_configuration": {"gates": wrong}},
            [f"readygate_extender_configuration.gates is {json.dumps(wrong)}, not a list of gates"],
            id=f"gates that are {name}",
        )
        for wrong, name in ((None, "null"), ({}, "a mapping"), ([None], "a list of null"))
    ],
    pytest.param(
        IMAGE | {"readygate_extender_configuration": {"listen": {"port": 9376}}},
        ["both follow from readygate_extender_port"],
        id="a port that the probes and the pod's user would not follow",
    ),
    pytest.param(
        IMAGE | {CHECKS: [{"name": "a", "exec": {"comand": ["x"]}}, COMMAND]},
        ["readygate_agent_checks.exec.comand", "name found in readygate_agent_checks"],
        id="a key that checks do not have, and a name that is missing",
    ),
    pytest.param(
        IMAGE | {CHECKS: [{"name": "cni", **COMMAND}, {"name": "Big"}], "readygate_agent_max_unavailable": "0"},
        ["must have one of ", "a name of its own", "lower case", "readygate_agent_max_unavailable is 0"],
        id="every mistake is told at once",
    ),
]


@pytest.mark.parametrize(("variables", "expected"), REFUSED)
def test_a_mistake_in_a_variable_is_refused_before_a_host_is_asked(tmp_path, variables, expected):
    code, told = play(tmp_path, inventory(variables))
    assert code != 0
    assert [] == [words for words in expected if words not in told], told
