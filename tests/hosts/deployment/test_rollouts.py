"""Roll-outs that meet what real clusters have: wrong configurations and images, a second run, a host that is gone.

Each plays `ARMED`, so that what it leaves is what the tests after it begin with.
"""

import json
import re
import signal

import pytest

from kube import contract
from tests.hosts.deployment.conftest import ARMED, agents
from tests.hosts.waiting import wait_for
from tools.testbed.hosts.layers import CNI_BIN_DIR, CNI_CONF_DIR
from tools.testbed.shared.api import condition

GONE = "worker-2"
OTHER_PLUGINS = "/opt/other-cni/bin"  # where a node of another make has them
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?fieldSelector=metadata.name%3Dreadygate-playbooks"
TRIALS = f"/api/v1/namespaces/{contract.NAMESPACE}/pods?labelSelector={contract.LABEL_NAME}%3Dreadygate-trial"
UNKNOWN = "registry.invalid/readygate:none"
NEGATIVE = [{"name": "late", "exec": {"command": ["true"]}, "initialDelaySeconds": -1}]
AGENTS = f"/apis/apps/v1/namespaces/{contract.NAMESPACE}/daemonsets/{contract.NAME_AGENT}"
QUOTAS = f"/api/v1/namespaces/{contract.NAMESPACE}/resourcequotas"
EXTENDERS = f"/apis/apps/v1/namespaces/{contract.NAMESPACE}/daemonsets/{contract.NAME_EXTENDER}"
REVISIONS = f"/apis/apps/v1/namespaces/{contract.NAMESPACE}/controllerrevisions"
OF_EXTENDERS = f"?labelSelector={contract.LABEL_NAME}%3D{contract.NAME_EXTENDER}"
AGENT = "readygate_agent"  # the rest of the play has nothing to do in these
pytestmark = pytest.mark.usefixtures("armed")


def identities(api):
    """Of the agents, by node: a roll-out that touches one makes another."""
    return {node: pod["metadata"]["uid"] for node, pod in agents(api).items()}


def are_ready(api):
    states = {condition(pod, contract.CONDITION_READY).get("status") for pod in agents(api).values()}
    return states == {contract.STATUS_TRUE}


def test_agents_read_a_cni_configuration_that_is_roots_alone(hosts, api):
    for node in hosts.names:
        seen = hosts.ssh(node, f"stat --format='%U %a' {CNI_CONF_DIR}/*").stdout.split()
        assert seen == ["root", "600"]
        assert condition(agents(api)[node], contract.CONDITION_NODE_HEALTHY)["status"] == contract.STATUS_TRUE


@pytest.mark.parametrize(
    ("variables", "cause"),
    [
        pytest.param({"readygate_agent_checks": NEGATIVE}, "initialDelaySeconds", id="a check that the agent refuses"),
        pytest.param({"readygate_agent_image": UNKNOWN}, "registry.invalid", id="an image that cannot be pulled"),
    ],
)
def test_what_cannot_work_is_found_before_an_agent_is_touched(api, ansible, variables, cause):
    before = identities(api)
    run = ansible.run("site.yml", **ARMED, readygate_agent_trial_timeout_seconds=90, **variables)
    assert run.code != 0
    assert all(words in run.told() for words in (cause, "does not accept this configuration", "no agent was changed"))
    assert before == identities(api)
    assert wait_for(lambda: api.items(TRIALS) == [])


def configurations(api):
    """What the agents run with: image and configuration."""
    return {
        (pod["spec"]["containers"][0]["image"], json.dumps(pod["spec"]["volumes"], sort_keys=True))
        for pod in agents(api).values()
    }


def without_tokens(configurations):
    """The volume that the API server gives a pod is named by chance."""
    return {(image, re.sub("kube-api-access-[a-z0-9]+", "", volumes)) for image, volumes in configurations}


@pytest.mark.parametrize(
    ("variables", "causes"),
    [
        pytest.param(
            {"readygate_agent_image": UNKNOWN}, ("registry.invalid", "ErrImagePull"), id="an image that is nowhere"
        ),
        pytest.param(
            {"readygate_agent_checks": NEGATIVE}, ("it ends with code", "initialDelaySeconds"), id="agents that crash"
        ),
    ],
)
def test_a_roll_out_that_fails_ends_early_with_its_cause_and_is_undone(api, ansible, variables, causes):
    """Without the trial, which would have found it."""
    before = agents(api).keys(), without_tokens(configurations(api))
    run = ansible.run("site.yml", tags=AGENT, **ARMED, **variables, readygate_agent_trial=False)
    assert run.code != 0
    assert all(words in run.told() for words in (*causes, "is rolled out again")), run.told()
    assert "RETRYING" not in run.output

    def back():
        return before == (agents(api).keys(), without_tokens(configurations(api))) and are_ready(api)

    assert wait_for(back)


def test_a_roll_out_whose_pods_are_refused_ends_early_with_the_refusal(api, ansible):
    """By a quota of the namespace, as a cluster's operator sets one. It stops the way back too, until it is gone."""
    before = agents(api).keys()
    api.create(QUOTAS, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    try:
        assert wait_for(lambda: "used" in api.get(f"{QUOTAS}/none").get("status", {}))
        run = ansible.run(
            "site.yml", tags=AGENT, **ARMED, readygate_agent_log_level="error", readygate_agent_trial=False
        )
    finally:
        api.delete(f"{QUOTAS}/none")
    assert run.code != 0
    assert all(words in run.told() for words in ("1 pods cannot be created", "exceeded quota: none")), run.told()
    assert "RETRYING" not in run.output
    # The controller tries ever more seldom, in the end each quarter of an hour; what happens to its object wakes it.
    api.patch(AGENTS, {"metadata": {"annotations": {"tests-wake": "its controller"}}})
    assert wait_for(lambda: before == agents(api).keys() and are_ready(api))


def test_two_runs_exclude_each_other_and_one_that_was_killed_is_no_hindrance(api, ansible):
    with ansible.begin("site.yml", **ARMED) as first:
        # Not any Lease: one of a run that failed before may be there until then.
        held = f"(process {first.pid},"
        assert wait_for(lambda: held in json.dumps(api.items(LEASE))), "the first run has begun"
        first.send_signal(signal.SIGSTOP)  # with nothing to change it might end before the second gets so far
        second = ansible.run("site.yml", **ARMED)
        assert second.code != 0
        assert f"process {first.pid}" in second.told()
        assert "another run has not ended" in second.told()
        first.send_signal(signal.SIGKILL)
    third = ansible.run("site.yml", tags=AGENT, **ARMED, readygate_agent_log_level="error")
    assert third.code == 0, third.told()
    assert [] == api.items(LEASE)


def test_a_host_that_is_gone_blocks_no_roll_out_and_gets_the_new_agent_when_it_is_back(hosts, api, ansible):
    def seen():
        return condition(api.get(f"/api/v1/nodes/{GONE}"), contract.CONDITION_READY)["status"]

    before = identities(api)
    with hosts.away(GONE):
        assert wait_for(lambda: seen() == contract.STATUS_UNKNOWN)
        run = ansible.run("site.yml", tags=AGENT, **ARMED, readygate_agent_log_level="warning")
        assert run.code == 0, run.told()
        assert f"{GONE} (dead)" in run.output
        after = identities(api)
        assert [GONE] == [node for node in sorted(before) if before[node] == after[node]]
    assert wait_for(lambda: seen() == contract.STATUS_TRUE)
    assert wait_for(lambda: identities(api).get(GONE) not in {None, before[GONE]} and are_ready(api), every_s=1)


def healths(api):
    """Of the nodes, as the agents say."""
    return {
        node: condition(pod, contract.CONDITION_NODE_HEALTHY).get("status") for node, pod in sorted(agents(api).items())
    }


@pytest.fixture
def two_folders(hosts, ansible):
    """The inventory names two folders of plugins: one node has both, the others one."""
    hosts.ssh("control-1", f"mkdir -p {OTHER_PLUGINS} && touch {OTHER_PLUGINS}/.there-before")
    yield {"readygate_agent_cni_bin_dirs": [OTHER_PLUGINS, CNI_BIN_DIR]}
    hosts.ssh("worker-1", f"chmod +x {CNI_BIN_DIR}/bridge")
    run = ansible.run("site.yml", tags=AGENT, **ARMED)
    for name in hosts.names:
        hosts.ssh(name, f"rm -rf {OTHER_PLUGINS}")
    assert run.code == 0, run.told()


def test_of_several_folders_of_plugins_a_node_needs_one(hosts, api, ansible, two_folders):
    run = ansible.run("site.yml", tags=AGENT, **ARMED, **two_folders)
    assert run.code == 0, run.told()
    well = dict.fromkeys(sorted(hosts.names), contract.STATUS_TRUE)
    assert wait_for(lambda: well == healths(api)), healths(api)
    listed = {name: hosts.ssh(name, f"ls -A {OTHER_PLUGINS}").stdout.split() for name in hosts.names}
    assert {name: [] for name in hosts.names} | {"control-1": [".there-before"]} == listed, "made by the kubelet, empty"
    hosts.ssh("worker-1", f"chmod -x {CNI_BIN_DIR}/bridge")
    broken = well | {"worker-1": contract.STATUS_FALSE}
    assert wait_for(lambda: broken == healths(api)), healths(api)
    assert "bridge" in condition(agents(api)["worker-1"], contract.CONDITION_NODE_HEALTHY)["message"]
    hosts.ssh("worker-1", f"chmod +x {CNI_BIN_DIR}/bridge")
    assert wait_for(lambda: well == healths(api)), healths(api)


def configuration_of(template):
    return next(each["configMap"]["name"] for each in template["spec"]["volumes"] if each["name"] == "config")


def test_the_extender_can_be_taken_back_by_hand_past_several_versions(hosts, api, ansible):
    """`kubectl rollout undo` knows nothing of ConfigMaps: a pod whose own is gone would never start."""
    before = configuration_of(api.get(EXTENDERS)["spec"]["template"])
    for limit_s in (121, 122, 123):
        given = ARMED["readygate_extender_configuration"] | {"staleLimitSeconds": limit_s}
        variables = ARMED | {"readygate_extender_configuration": given}
        run = ansible.run("site.yml", tags="readygate_extender", **variables)
        assert run.code == 0, run.told()
    named = {configuration_of(each["data"]["spec"]["template"]): each for each in api.items(REVISIONS + OF_EXTENDERS)}
    assert len(named) >= 4
    name, revision = f"daemonset/{contract.NAME_EXTENDER}", named[before]["revision"]
    hosts.kubectl("--namespace", contract.NAMESPACE, "rollout", "undo", name, f"--to-revision={revision}")

    def back():
        pods = api.items(f"/api/v1/namespaces/{contract.NAMESPACE}/pods{OF_EXTENDERS}")
        seen = [(condition(pod, contract.CONDITION_READY).get("status"), configuration_of(pod)) for pod in pods]
        return [(contract.STATUS_TRUE, before)] == seen

    assert wait_for(back)
