"""The README's commands as they stand: the image, the rehearsal, the play, the status. What a play leaves on a fresh
cluster, and who may write what then, is in tests/hosts/path.
"""

import re

import pytest

from kube import contract
from tests.hosts.deployment import readme
from tests.hosts.deployment.conftest import (
    agents,
    namespaces,
    scheduler_files,
)
from tools.testbed.shared.api import condition

NS = contract.NAMESPACE
FOLDER = "/etc/kubernetes/readygate"


def test_the_image_is_built_and_put_on_each_host_as_the_readme_says(hosts, checkout, image):
    hosts.ssh("worker-2", f"ctr --namespace k8s.io images rm {image}")
    for line in (readme.IMAGE, readme.LOAD):
        done = checkout.run(line)
        assert done.code == 0, done.told()
    for host in hosts.names:
        assert image in hosts.ssh(host, "ctr --namespace k8s.io images ls --quiet").stdout.split()


def test_check_mode_says_what_would_change_and_changes_nothing(hosts, api, untouched, rehearsed):
    assert rehearsed.code == 0, rehearsed.told()
    assert rehearsed.changed >= 4  # agent, extender, scheduler, kubeadm's ConfigMap
    assert "+    - --config=/etc/kubernetes/readygate/kube-scheduler-" in rehearsed.output
    kinds = re.findall(r'"\+kind: (\w+)"', rehearsed.output)
    assert {"Namespace", "DaemonSet", "ConfigMap", "Role", "NetworkPolicy", "ValidatingAdmissionPolicy"} <= set(kinds)
    assert kinds.count("DaemonSet") == 2, "every object is shown, though there is no namespace yet to try them in"
    if NS not in namespaces(api):  # else `deployed` has run since
        assert untouched == scheduler_files(hosts, api)
        assert hosts.ssh("control-1", "ls -A /etc/kubernetes").stdout.count("readygate") == 0


def test_the_play_ends_well_with_an_agent_on_each_node_that_says_healthy(hosts, api, deployed):
    assert deployed.changed > 0
    seen = agents(api)
    assert sorted(hosts.names) == sorted(seen)
    for pod in seen.values():
        for kind in (contract.CONDITION_NODE_HEALTHY, contract.CONDITION_READY):
            assert contract.STATUS_TRUE == condition(pod, kind).get("status"), (kind, pod["status"])


@pytest.mark.usefixtures("deployed")
def test_status_shows_each_node_open_as_the_readme_says(hosts, checkout):
    shown = checkout.run(readme.STATUS)
    assert shown.code == 0, shown.output
    assert f"{len(hosts.names)} of {len(hosts.names)} nodes open" in shown.output


def test_a_second_run_changes_nothing(ansible, hosts, api, deployed):
    assert deployed.code == 0
    before = scheduler_files(hosts, api)
    again = ansible.run("site.yml")
    assert (again.code, again.changed) == (0, 0), again.told()
    assert before == scheduler_files(hosts, api)
