"""Whoever is not root on the hosts, and becomes it by a password, plays everything: each role, from an empty cluster to
one that is empty again.
"""

import re

import pytest
import yaml

from images.build import readygate_image
from kube import contract
from tests.hosts.deployment.conftest import ARMED, namespaces, scheduler_files
from tests.playbooks.rendering import ROLES

USER, PASSWORD = "somebody", "a password with spaces"
LEFT = "ls -d /etc/kubernetes/*readygate* /opt/readygate /etc/systemd/system/*readygate* 2> /dev/null || true"


@pytest.fixture
def operator(hosts):
    """On each host; what the inventory says of them."""
    for name in hosts.names:
        home = f"/home/{USER}"
        hosts.ssh(name, f"useradd --create-home --shell /bin/bash {USER}")
        hosts.ssh(name, f"cp -r /root/.ssh {home}/ && chown -R {USER}: {home}/.ssh")
        hosts.ssh(name, "chpasswd", stdin=f"root:{PASSWORD}\n")
    yield {
        "ansible_user": USER,
        "ansible_become_method": "su",
        "ansible_become_password": PASSWORD,
        "ansible_ssh_pipelining": False,
    }
    for name in hosts.names:
        hosts.ssh(name, f"passwd --lock root; pkill -u {USER}; sleep 1; userdel --remove {USER}")


def played(run):
    """The roles of which a task was played."""
    return set(re.findall(r"^TASK \[(readygate_\w+) : ", run.output, re.MULTILINE))


def test_another_user_than_root_plays_each_role_both_ways(hosts, api, ansible, untouched, operator):
    """The agent in both forms, the extender as a static pod: what is written on hosts is written by all of it."""
    if contract.NAMESPACE in namespaces(api):  # of the tests before this one
        cleared = ansible.run("uninstall.yml")
        assert cleared.code == 0, cleared.told()
    forms = {
        **ARMED,
        "readygate_scheduler_config_mode": "enforce",
        "readygate_agent_form": "both",
        "readygate_node_archives": [str(readygate_image(hosts.progress))],
        "readygate_node_min_ready_seconds": 1,
    }
    every = {path.name for path in ROLES.iterdir()}
    run = ansible.run("site.yml", **forms, **operator)
    assert run.code == 0, run.told()
    assert every == played(run)
    well = ansible.run("check.yml", **forms, **operator)
    assert well.code == 0, well.told()
    removed = ansible.run("uninstall.yml", **forms, **operator)
    assert removed.code == 0, removed.told()
    assert every == played(removed)
    after = scheduler_files(hosts, api)
    assert (untouched.manifest, untouched.listing) == (after.manifest, after.listing), "byte for byte"
    assert yaml.safe_load(untouched.cluster) == yaml.safe_load(after.cluster)
    assert [""] * len(hosts.names) == [hosts.ssh(name, LEFT).stdout for name in hosts.names]
    assert [] == [one for one in (run, well, removed) if PASSWORD in one.output]
