"""Every other form by one run of site.yml: the extender as a static pod in enforce, the agent as a service that speaks
for its pods, and gates that are armed.
"""

import re

import pytest

from agent.wire.condition import ANNOTATION_SPEAKER, SPEAKER_NODE
from extender.policy import reasons
from kube import contract
from tests.hosts.deployment.conftest import MANIFESTS, agents
from tests.hosts.deployment.landing import POD_URL, STATIC_URL
from tests.hosts.deployment.ports import is_without_rights, statuses
from tests.hosts.deployment.probing import clear
from tests.hosts.deployment.test_survival import configz
from tests.hosts.deployment.test_undo import SCHEDULER_ONLY, WRONG
from tests.hosts.path.conftest import CHANGED, archives
from tests.hosts.path.placing import HEAL, INJECT, send, wait_decided, wait_placed, wait_refused
from tests.hosts.waiting import wait_until
from tests.playbooks.rendering import ROLES
from tools.testbed.shared.api import condition

pytestmark = pytest.mark.usefixtures("changed")
NODE, OTHER = "worker-1", "worker-2"
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
EXTENDERS = f"/apis/apps/v1/namespaces/{contract.NAMESPACE}/daemonsets"


def test_the_run_plays_each_role(changed):
    played = set(re.findall(r"^TASK \[(readygate_\w+) : ", changed.run.output, re.MULTILINE))
    assert {path.name for path in ROLES.iterdir()} == played


def test_on_the_way_from_one_form_to_the_other_the_scheduler_always_had_an_extender(changed):
    assert ({POD_URL, STATIC_URL}, []) == (changed.answered, changed.missed)


def test_the_extender_is_a_static_pod_that_the_scheduler_cannot_do_without(hosts, api):
    (registered,) = configz(hosts)["extenders"]
    assert (STATIC_URL, False) == (registered["urlPrefix"], registered.get("ignorable", False))
    listing = hosts.ssh("control-1", f"ls -A {MANIFESTS}").stdout.split()
    names = (contract.NAME_EXTENDER, *CONTROL_PLANE)
    assert sorted(f"{name}.yaml" for name in names) == sorted(listing)
    assert [contract.NAME_AGENT] == [each["metadata"]["name"] for each in api.items(EXTENDERS)]


def test_neither_process_of_the_extender_has_rights_on_its_host(hosts):
    assert [True, True] == [is_without_rights(one) for one in statuses(hosts, contract.PORT_STATIC)]


def test_each_pod_is_ready_by_what_the_service_beside_the_kubelet_reports(hosts, api):
    words = {
        node: (
            pod["metadata"]["annotations"].get(ANNOTATION_SPEAKER),
            condition(pod, contract.CONDITION_NODE_HEALTHY).get("status"),
            condition(pod, contract.CONDITION_READY).get("status"),
        )
        for node, pod in agents(api).items()
    }
    assert dict.fromkeys(hosts.names, (SPEAKER_NODE, "True", "True")) == words
    active = "systemctl is-active readygate-node; systemctl is-enabled readygate-node"
    assert dict.fromkeys(hosts.names, "active\nenabled\n") == {
        name: hosts.ssh(name, active).stdout for name in hosts.names
    }


def test_a_fault_that_the_service_sees_closes_a_node_whose_kubelet_has_stopped(hosts, api):
    """The kubelet is stopped by a signal: whatever is written of its pod then, the service has written."""
    clear(api)

    def reported() -> str:
        return str(condition(agents(api)[NODE], contract.CONDITION_NODE_HEALTHY).get("status"))

    try:
        hosts.ssh(NODE, f"systemctl kill --kill-whom=main --signal=STOP kubelet; {INJECT}")
        wait_until(lambda: reported() == contract.STATUS_FALSE, "the service reports the fault")
        decided = wait_decided(hosts, NODE, open=False, armed=True)
        assert decided["reason"] in (reasons.CLOSED_UNHEALTHY, reasons.CLOSED_NODE_LOST), decided
        send(api, "probing-here", NODE)
        wait_refused(api, "probing-here", decided["reason"])
        send(api, "probing-anywhere", None)
        wait_placed(api, "probing-anywhere", OTHER)
    finally:
        hosts.ssh(NODE, f"{HEAL}; systemctl kill --kill-whom=main --signal=CONT kubelet")
    wait_placed(api, "probing-here", NODE)
    wait_decided(hosts, NODE, open=True, reason="")
    clear(api)


def test_a_configuration_that_the_scheduler_refuses_is_never_put_in_place(hosts, ansible):
    manifest = f"cat {MANIFESTS}/kube-scheduler.yaml"
    before = hosts.ssh("control-1", manifest).stdout
    run = ansible.run(SCHEDULER_ONLY, **CHANGED, readygate_scheduler_config_base=WRONG)
    assert run.code != 0
    assert all(words in run.told() for words in ("NoSuchPlugin", "nothing was changed")), run.told()
    assert before == hosts.ssh("control-1", manifest).stdout


def test_a_second_run_changes_nothing(hosts, ansible):
    again = ansible.run("site.yml", **CHANGED, **archives(hosts))
    assert (0, 0) == (again.code, again.changed), again.told()
