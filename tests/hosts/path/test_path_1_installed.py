"""site.yml over SSH on a fresh kubeadm cluster: what it installs, what it leaves alone, and who may write what.

The rehearsal and the commands as the README has them are in tests/hosts/deployment.
"""

import json
import re

import pytest
import yaml

from agent.wire.condition import REASON_CHECKS_PASSED
from extender.outlets.kick import ANNOTATION_KICK
from kube import contract
from tests.hosts.deployment.conftest import KUBEADM_CONFIG, MANIFESTS, agents, scheduler_files
from tests.hosts.deployment.test_status_api import readygate
from tests.hosts.waiting import wait_until
from tools.testbed.shared.api import ApiError, condition

pytestmark = pytest.mark.usefixtures("installed")
NS = contract.NAMESPACE
FOLDER = "/etc/kubernetes/readygate"
STATUS_PORT = 9377


def test_each_node_has_an_agent_that_reports_its_node_healthy(hosts, api):
    seen = agents(api)
    assert sorted(hosts.names) == sorted(seen)
    for pod in seen.values():
        for kind in (contract.CONDITION_NODE_HEALTHY, contract.CONDITION_READY):
            assert contract.STATUS_TRUE == condition(pod, kind).get("status"), (kind, pod["status"])


def test_status_and_why_reach_the_extender_with_nothing_but_a_kubeconfig(hosts):
    """The real API server and the real kubelet forward the port."""
    code, out, err = readygate(hosts, "status")
    assert (0, "", True) == (code, err, f"{len(hosts.names)} of {len(hosts.names)} nodes open" in out), out
    code, out, err = readygate(hosts, "why", "node", "worker-1")
    assert (0, "worker-1 is open.", "") == (code, out.splitlines()[0], err)


def test_doctor_reads_the_configuration_that_the_scheduler_has_loaded_and_reports_no_error(hosts):
    _, out, err = readygate(hosts, "doctor", "--output=json")
    found = json.loads(out)["findings"]
    assert [] == [one for one in found if one["severity"] == "error" or one["name"] == "scheduler-unread"], err


def test_the_extender_answers_on_the_schedulers_host_and_on_no_other(hosts):
    ports = (contract.PORT_DAEMON_SET, STATUS_PORT)
    for port in ports:
        url = f"http://127.0.0.1:{port}/readyz"
        ask = f"curl --silent --output /dev/null --write-out '%{{http_code}} ' {url}"
        assert "200 421 " == hosts.ssh("control-1", f"{ask}; {ask} --header 'Host: evil.example'").stdout
    curl = f"curl --silent --max-time 30 http://{hosts.address('control-1')}"
    for port in (*ports, 9379):  # the last one is Prometheus's, where it is configured
        assert hosts.ssh("worker-1", f"{curl}:{port}/metrics", check=False).returncode == 7, "refused"


def test_the_manifest_folder_holds_the_same_names_as_before(hosts, api, before):
    assert before.files.listing == scheduler_files(hosts, api).listing
    listed = hosts.ssh("control-1", f"ls {FOLDER}").stdout.split()
    (configuration,) = [name for name in listed if re.fullmatch(r"kube-scheduler-[0-9a-f]{12}\.yaml", name)]
    assert {*listed} - {configuration} == {"bin", "job.json", "lock", "original", "proven", "verdict.json"}
    units = hosts.ssh("control-1", "ls /etc/systemd/system").stdout.split()
    assert [name for name in units if "readygate" in name] == [], "the dead man's switch exists only during a change"


def test_the_earlier_scheduler_gave_up_its_lease(hosts):
    """Its identity was the host's name. Without this, pods wait for 20 s longer."""
    verdict = json.loads(hosts.ssh("control-1", f"cat {FOLDER}/verdict.json").stdout)
    assert verdict["lease"] in ("by itself", "for it"), verdict


def test_kubeadm_itself_would_write_this_manifest_so_an_upgrade_keeps_it(hosts):
    folder = hosts.ssh("control-1", "mktemp --directory /root/render.XXXXXX").stdout.strip()
    command = (
        f"kubectl --kubeconfig /etc/kubernetes/admin.conf --namespace kube-system get configmap kubeadm-config"
        f" --output=jsonpath='{{.data.ClusterConfiguration}}' > {folder}/cluster.yaml"
        f" && KUBEADM_INIT_DRYRUN_DIR={folder} kubeadm init phase control-plane scheduler --dry-run"
        f" --config {folder}/cluster.yaml && cmp {folder}/kube-scheduler.yaml {MANIFESTS}/kube-scheduler.yaml"
    )
    assert hosts.ssh("control-1", command).returncode == 0


def test_nothing_else_of_kubeadms_configuration_has_changed(api, before):
    was, now = (
        yaml.safe_load(text) for text in (before.files.cluster, api.get(KUBEADM_CONFIG)["data"]["ClusterConfiguration"])
    )
    registered = now.pop("scheduler")
    was.pop("scheduler")
    assert was == now
    assert ["config"] == [argument["name"] for argument in registered["extraArgs"]]
    assert ["readygate"] == [volume["name"] for volume in registered["extraVolumes"]]


def test_the_play_has_seen_a_pod_refused_everywhere_while_all_gates_are_in_shadow(api, installed):
    assert "Check that kube-scheduler refuses a pod that readygate refuses on every node" in installed.output
    events = api.items(f"/api/v1/namespaces/{NS}/events")
    canary = "readygate-canary"
    refusals = [
        event["message"]
        for event in events
        if event["reason"] == "FailedScheduling" and event["involvedObject"]["name"].startswith(canary)
    ]
    assert any(contract.CANARY_REFUSED in message for message in refusals), events
    left = [*api.items(f"/api/v1/namespaces/{NS}/pods"), *api.items("/apis/scheduling.k8s.io/v1/priorityclasses")]
    assert [] == [one["metadata"]["name"] for one in left if one["metadata"]["name"].startswith(canary)]


@pytest.fixture(scope="module")
def as_agent(api, installed):  # noqa: ARG001
    """An API client with the token of worker-1's agent, the agent's pod, and another agent's pod."""
    own, other = agents(api)["worker-1"], agents(api)["worker-2"]
    bound = {"kind": "Pod", "apiVersion": "v1", "name": own["metadata"]["name"], "uid": own["metadata"]["uid"]}
    request = {"spec": {"boundObjectRef": bound, "expirationSeconds": 600}}
    path = f"/api/v1/namespaces/{NS}/serviceaccounts/{contract.NAME_AGENT}/token"
    token = api.create(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", **request})
    return api.by_token(token["status"]["token"]), own["metadata"]["name"], other["metadata"]["name"]


HEALTHY = {"type": contract.CONDITION_NODE_HEALTHY, "status": "True", "reason": REASON_CHECKS_PASSED}


def test_an_agent_may_write_its_own_condition(as_agent):
    client, own, _ = as_agent
    client.patch(f"/api/v1/namespaces/{NS}/pods/{own}/status", {"status": {"conditions": [HEALTHY]}})


def conditions(**fields):
    return {"status": {"conditions": [fields]}}


# What: (whose pod, part of the pod, the patch).
FORBIDDEN = {
    "the condition of another pod": ("other", "/status", conditions(**HEALTHY)),
    "its address": ("own", "/status", {"status": {"podIP": "10.244.9.9"}}),
    "its phase": ("own", "/status", {"status": {"phase": "Failed"}}),
    "a field that was not there": ("own", "/status", {"status": {"reason": "Evicted"}}),
    "the kubelet's Ready": ("own", "/status", conditions(type="Ready", status="False")),
    "a foreign condition": ("own", "/status", conditions(type="x.example/y", status="True")),
    "a label": ("own", "/status", {"metadata": {"labels": {contract.LABEL_NAME: "x"}}}),
    "an annotation": ("own", "/status", {"metadata": {"annotations": {"a": "b"}}}),
    "the pod itself": ("own", "", {"metadata": {"labels": {"a": "b"}}}),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_an_agent_may_not_write(as_agent, what):
    client, own, other = as_agent
    whose, part, body = FORBIDDEN[what]
    with pytest.raises(ApiError) as caught:
        client.patch(f"/api/v1/namespaces/{NS}/pods/{own if whose == 'own' else other}{part}", body)
    assert caught.value.status in (403, 422), caught.value
    assert "readygate agent may" in caught.value.message or "cannot patch" in caught.value.message


def test_the_extender_may_write_nothing_of_a_node_but_the_kick(api):
    path = f"/api/v1/namespaces/{NS}/serviceaccounts/{contract.NAME_EXTENDER}/token"
    token = api.create(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    client = api.by_token(token["status"]["token"])
    client.patch("/api/v1/nodes/worker-1", {"metadata": {"annotations": {ANNOTATION_KICK: "test"}}})
    for body in (
        {"spec": {"unschedulable": True}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"annotations": {"a": "b"}}},
    ):
        with pytest.raises(ApiError, match="readygate extender may write only"):
            client.patch("/api/v1/nodes/worker-1", body)


def test_the_policies_compile_against_this_clusters_types(api):
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    found: dict[str, object] = {}

    def are_checked() -> bool:
        """By the controller manager, which writes what it has found into each."""
        found.update({p["metadata"]["name"]: p.get("status", {}).get("typeChecking") for p in api.items(path)})
        return None not in found.values()

    wait_until(are_checked, lambda: f"type checks: {found}")
    assert len(found) >= 7
    assert found == {name: {} for name in found}


def test_a_mistake_in_a_variable_stops_the_play_at_once_and_names_what_is_allowed(ansible):
    run = ansible.run("site.yml", readygate_agent_profile="slow")
    assert (run.code != 0, run.changed) == (True, 0)
    assert all(word in run.told() for word in ("readygate_agent_profile", "default", "fast"))
