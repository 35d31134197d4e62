"""node-plugin.yml for many hosts, which are pretended: batches, hosts that are down, and what is told at the end."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.playbooks.archives import small
from tests.playbooks.rendering import PLAYBOOKS, render
from tests.playbooks.test_node_plugin import IDENTITY, NOTHING, ROLE

BATCH = "PLAY [Agent as a service on every node, in batches]"
NO_IMAGE = "riscv64"
MANY = int(os.environ.get("READYGATE_MANY_HOSTS", "40"))  # 200 of them are four minutes
LIMIT_S = 300 + 10 * MANY
pytestmark = pytest.mark.timeout(LIMIT_S)  # some 100 forks of Ansible's and more


def in_place(archive: Path) -> dict[str, str]:
    """What a host says that has all of it already."""
    seen = NOTHING | IDENTITY | {"status": "healthy: all checks passed (1)", "intact": "yes", "state": "active enabled"}
    given = {
        "readygate_node_archives": [str(archive)],
        "__readygate_node_looked": {"stdout_lines": [f"{key}={value}" for key, value in seen.items()]},
    }
    return seen | {"revision": render(ROLE, given)("__readygate_node_revision")}


def play(
    folder: Path,
    hosts: dict[str, dict[str, str] | None],
    group: str,
    *options: str,
    controls: Sequence[str] = (),
    playbook: str = "node-plugin.yml",
    **variables: Any,
) -> tuple[int, str]:
    """Exit code and output. hosts: what each says of itself, None for one that is down. controls: the control
    planes of them."""
    lines = {host: seen and [f"{key}={value}" for key, value in seen.items()] for host, seen in hosts.items()}
    (folder / "hosts.json").write_text(json.dumps(lines))
    own = {"ansible_connection": "pretended", "ansible_python_interpreter": "/usr/bin/python3", "ansible_become": False}
    everybody = {group: {"hosts": {host: {} for host in hosts}, "vars": own | variables}}
    if controls:
        everybody["control_plane"] = {"hosts": {host: {} for host in controls}}
    (folder / "inventory.yml").write_text(json.dumps(everybody))
    given = {
        "READYGATE_HOSTS": str(folder / "hosts.json"),
        "ANSIBLE_CONNECTION_PLUGINS": str(Path(__file__).parent / "connection_plugins"),
        "ANSIBLE_PIPELINING": "true",
        "ANSIBLE_FORKS": "20",
        "ANSIBLE_HOME": str(folder / "ansible"),
        "ANSIBLE_NOCOLOR": "1",
        "READYGATE_REHEARSED": "1" if "--check" in options else "0",
    }
    command = [sys.executable, "-m", "ansible", "playbook", "-i", str(folder / "inventory.yml")]
    done = subprocess.run(
        [*command, *options, str(PLAYBOOKS / playbook)],
        env=os.environ | given,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    return done.returncode, done.stdout


def sentence(output: str) -> str:
    (found,) = re.findall(r'"msg": "(readygate (?:runs|can run) in this version on .*)"$', output, re.MULTILINE)
    return str(found)


def test_of_many_hosts_those_that_are_down_or_fail_stop_nobody_and_are_named(tmp_path):
    """In batches of 1, 10 % and 25 %, the first of them a host that is down; second run, so nothing changes."""
    archive = small(tmp_path / "image.tar", "amd64")
    well = in_place(archive)
    hosts = {f"node-{number:03}": well for number in range(MANY)}
    down = dict.fromkeys(["node-000", "node-010", last := f"node-{MANY - 1:03}"])
    code, output = play(
        tmp_path,
        {**hosts, **down, "node-020": well | {"machine": NO_IMAGE}},
        "kube_node",
        readygate_node_archives=[str(archive)],
    )
    told = sentence(output)
    assert told.startswith(
        f"readygate runs in this version on {MANY - 4} of {MANY} nodes; not reached, so run this again when they are"
        f" back: node-000, node-010, {last}; failed, nothing was changed or the change was undone: node-020 ("
    )
    assert f"no archive of readygate_node_archives is for {NO_IMAGE}" in told
    assert (2, 6, {"0"}) == (code, output.count(BATCH), set(re.findall(r"changed=(\d+)", output)))


def test_checks_have_the_addresses_that_each_host_and_the_inventory_tell_and_what_is_not_found_is_told(tmp_path):
    """The first run, in check mode."""
    archive = small(tmp_path / "image.tar", "amd64")
    told = NOTHING | IDENTITY | {"status": "", "dns": "10.96.0.10", "services": "10.96.0.1", "own": "yes"}
    hosts = {"192.0.2.1": told, "192.0.2.2": told | {"own": "no"}, "192.0.2.3": NOTHING | IDENTITY | {"status": ""}}
    given = {"readygate_node_archives": [str(archive)], "readygate_node_serial": ["100%"]}
    given |= {"readygate_node_check_profile": "default"}
    code, output = play(tmp_path, hosts, "nodes", "--check", "--diff", controls=["192.0.2.1"], **given)
    paths = sorted(re.findall(r'^\+- .*"servicePath": (\{.*?\})', output, re.MULTILINE))
    assert (0, 2) == (code, len(re.findall(r'^\+- .*"dns": ', output, re.MULTILINE))), output
    assert [
        {"apiServers": ["192.0.2.1"], "peers": ["192.0.2.2", "192.0.2.3"], "service": "10.96.0.1"},
        {"service": "10.96.0.1"},
    ] == [{key: sorted(one) if key == "peers" else one for key, one in json.loads(path).items()} for path in paths]
    assert sentence(output) == (
        "readygate can run in this version on 3 of 3 nodes; without checks of other nodes, because the host has none "
        "of its addresses in the inventory: 192.0.2.2; without the check dns, because the kubelet names no DNS "
        "server: 192.0.2.3; without the check service-path, because the address of the API server's Service is "
        "unknown: 192.0.2.3"
    )


def test_where_too_many_fail_the_rest_is_left_as_it_is(tmp_path):
    archive = small(tmp_path / "image.tar", "amd64")
    hosts = {f"node-{number}": in_place(archive) | {"machine": NO_IMAGE} for number in range(5)}
    given = {"readygate_node_archives": [str(archive)], "readygate_node_serial": [2]}
    code, output = play(tmp_path, hosts, "workers", **given)
    assert code == 2
    assert "readygate runs in this version on 0 of 5 nodes" in sentence(output)
    assert sentence(output).endswith("not changed because too many had failed: node-2, node-3, node-4")


def test_the_first_run_in_check_mode_shows_each_host_what_it_would_get(tmp_path):
    archive = small(tmp_path / "image.tar", "amd64")
    new = NOTHING | IDENTITY | {"status": ""}
    hosts = {**{f"node-{number}": new for number in range(3)}, "node-9": None}
    given = {"readygate_node_archives": [str(archive)], "readygate_node_serial": ["100%"]}
    code, output = play(tmp_path, hosts, "nodes", "--check", "--diff", **given)
    assert "readygate can run in this version on 3 of 4 nodes; not reached" in sentence(output)
    shown = [len(re.findall(rf"^\+{line}", output, re.MULTILINE)) for line in ("ExecStart=", "checks:")]
    assert (0, [3, 3]) == (code, shown), output


@pytest.mark.parametrize(
    ("controls", "expected"),
    [
        pytest.param(["node-1"], (1, 1), id="by a control plane"),
        pytest.param(["node-3", "node-1"], (1, 1), id="by one that is down nobody can, and nobody is stopped"),
        pytest.param([], (0, 0), id="not where the inventory has none"),
    ],
)
@pytest.mark.parametrize("playbook", ["node-plugin.yml", "node-plugin-uninstall.yml"])
def test_other_runs_of_the_cluster_are_kept_waiting(tmp_path, playbook, controls, expected):
    archive = small(tmp_path / "image.tar", "amd64")
    hosts = {"node-1": in_place(archive), "node-2": in_place(archive), "node-3": None}
    given = {"readygate_node_archives": [str(archive)], "readygate_node_serial": [1, 2]}
    code, output = play(tmp_path, hosts, "workers", controls=controls, playbook=playbook, **given)
    told = [len(re.findall(rf"^TASK \[readygate_objects : {name}", output, re.MULTILINE)) for name in ("Begin", "End")]
    assert (0, expected) == (code, tuple(told)), output


def test_hosts_that_are_down_alone_are_no_failure(tmp_path):
    archive = small(tmp_path / "image.tar", "amd64")
    hosts = {"node-1": None, "node-2": in_place(archive)}
    code, output = play(tmp_path, hosts, "k8s_cluster", readygate_node_archives=[str(archive)])
    assert (0, True) == (code, "run this again when they are back: node-1; without " in sentence(output))


def test_an_inventory_without_a_group_that_is_meant_is_an_error(tmp_path):
    archive = small(tmp_path / "image.tar", "amd64")
    code, output = play(tmp_path, {"a": None}, "web", readygate_node_archives=[str(archive)])
    assert code != 0
    assert "the inventory has no host in a group of readygate_node_groups" in output
